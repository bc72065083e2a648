// Events as the node wrote them. Times have nanoseconds and bodies may have
// integers of any length, which the numbers of a browser round: so the text of
// an answer is taken apart, and its numbers stay text.

export interface Event {
  time: bigint // ns since 1970
  body: string // JSON
}

/** A range of which damage took events. */
export interface Gap {
  start: number // ns, rounded
  end: number
  events: number
}

export interface Events {
  list: Event[]
  more: boolean // there are more than were asked for
  damaged: Gap[]
  micros: number // that the node took
}

/** Reads the answer to a GET of events. */
export function readEvents(text: string): Events {
  const answer = members(text)
  return {
    list: split(answer.get('e') ?? '[]').map(readEvent),
    more: answer.get('more') === 'true',
    damaged: JSON.parse(answer.get('damaged') ?? '[]') as Gap[],
    micros: Number(answer.get('t') ?? 0),
  }
}

/** The events of one field of a query. */
export interface EventList {
  name: string
  list: Event[]
  damaged: Gap[]
}

/** Reads the events of the answer to a query; its series are left out. */
export function readEventLists(text: string): EventList[] {
  return split(members(text).get('results') ?? '[]').map(members).filter((m) => m.get('type') === '"events"').map((m) => ({
    name: JSON.parse(m.get('name')!) as string,
    list: split(m.get('values')!).map(readEvent),
    damaged: JSON.parse(m.get('damaged') ?? '[]') as Gap[],
  }))
}

/** Reads one event. */
export function readEvent(text: string): Event {
  const event = members(text)
  return { time: BigInt(event.get('timestamp')!), body: event.get('event')! }
}

/** What is written with one colour. */
export interface Piece {
  kind: 'key' | 'string' | 'number' | 'word' | ''
  text: string
}

/** JSON over lines: what fits into so many characters stays on one. */
export function pretty(json: string, width = 100): Piece[] {
  const all = tokens(json)
  const ends = closings(all)
  const out: Piece[] = []
  const put = (text: string, kind: Piece['kind'] = '') => {
    const last = out.at(-1)
    if (kind === '' && last?.kind === '') last.text += text
    else out.push({ kind, text })
  }
  let indent = ''
  let flat = -1 // until this token everything stands on one line
  all.forEach((token, i) => {
    const line = () => (i > flat ? put(`\n${indent}`) : put(' '))
    const next = all[i + 1]!
    switch (token) {
      case '{': case '[':
        if (i > flat && short(all, i, ends.get(i)!, width - indent.length)) flat = ends.get(i)!
        put(token)
        indent += '  '
        if (i > flat && ends.get(i) !== i + 1) line()
        break
      case '}': case ']':
        indent = indent.slice(2)
        if (i > flat && ends.get(i) !== i - 1) line()
        put(token)
        break
      case ',':
        put(token)
        line()
        break
      case ':':
        put(': ')
        break
      default:
        put(token, kindOf(token, next))
    }
  })
  return out
}

function kindOf(token: string, next: string | undefined): Piece['kind'] {
  if (token.startsWith('"')) return next === ':' ? 'key' : 'string'
  return /^[-\d]/.test(token) ? 'number' : 'word'
}

/** Whether the tokens from an opening to its end fit into a line. */
function short(all: string[], from: number, to: number, room: number): boolean {
  for (let i = from; i <= to; i++) {
    room -= all[i]!.length + (all[i] === ',' || all[i] === ':' ? 1 : 0)
    if (room < 0) return false
  }
  return true
}

/** For every token that opens or closes something the number of its partner. */
function closings(all: string[]): Map<number, number> {
  const open: number[] = []
  const partners = new Map<number, number>()
  all.forEach((token, i) => {
    if (token === '{' || token === '[') open.push(i)
    if (token !== '}' && token !== ']') return
    const from = open.pop()!
    partners.set(from, i)
    partners.set(i, from)
  })
  return partners
}

/** The members of an object by key, each as text. */
function members(text: string): Map<string, string> {
  return new Map(split(text).map((part) => {
    const end = endOfString(part, 0)
    return [JSON.parse(part.slice(0, end)) as string, part.slice(part.indexOf(':', end) + 1).trim()]
  }))
}

/** What stands between the commas of an object or a list. */
function split(text: string): string[] {
  const out: string[] = []
  let depth = 0
  let from = 0
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (c === '"') i = endOfString(text, i) - 1
    else if (c === '{' || c === '[') {
      if (depth++ === 0) from = i + 1
    } else if (c === ',' && depth === 1) {
      out.push(text.slice(from, i).trim())
      from = i + 1
    } else if ((c === '}' || c === ']') && --depth === 0) {
      const last = text.slice(from, i).trim()
      if (last) out.push(last)
    }
  }
  return out
}

function tokens(json: string): string[] {
  const out: string[] = []
  for (let i = 0; i < json.length;) {
    const from = i
    const c = json[i]!
    if (c === '"') i = endOfString(json, i)
    else if ('{}[],:'.includes(c)) i++
    else while (i < json.length && !'{}[],:" \t\r\n'.includes(json[i]!)) i++
    if (i === from) i++ // a blank
    else out.push(json.slice(from, i))
  }
  return out
}

/** The index behind a string that begins at from. */
function endOfString(text: string, from: number): number {
  let i = from + 1
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1
  return i + 1
}
