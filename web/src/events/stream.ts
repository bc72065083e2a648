// Server-sent events, read from the body of an answer: unlike EventSource this
// shows what the node says when it refuses.

export interface Message {
  event: string // '' when it has no name
  data: string
}

/** Takes a stream apart; push takes what has come and gives the messages that are whole. */
export class Messages {
  private rest = ''

  push(text: string): Message[] {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop()!
    return blocks.map(read).filter((m) => m.data !== '')
  }
}

function read(block: string): Message {
  const lines = block.split('\n')
  const of = (field: string) => lines.filter((l) => l.startsWith(`${field}: `)).map((l) => l.slice(field.length + 2)).join('\n')
  return { event: of('event'), data: of('data') }
}
