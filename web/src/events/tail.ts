import { useEffect, useState } from 'preact/hooks'
import { followEvents, Unreachable } from '../api'
import { useConnection } from '../hooks'
import { readEvent, type Event } from './json'
import { Messages, type Message } from './stream'

export interface Tail {
  list: Event[] // the newest, in the order in which they came
  seen: number // that came since the tail began
  missed: number // that the node left out, because this page took them too slowly
  broken: number // how often the tail broke off: what was written meanwhile is not in it
  open: boolean
  error?: string
}

export const emptyTail: Tail = { list: [], seen: 0, missed: 0, broken: 0, open: false }

const draw = 200 // ms between two pictures
const most = 5000 // messages that wait for a picture: timers of a hidden page are slow
const again = 1000 // ms until a tail that ended is asked for again

/** Adds what has come; only the newest events are kept. */
export function grown(tail: Tail, messages: Message[], limit: number): Tail {
  const fresh: Event[] = []
  let missed = 0
  for (const m of messages) {
    if (m.event === 'missed') missed += (JSON.parse(m.data) as { events: number }).events
    else if (m.event === '') fresh.push(readEvent(m.data))
  }
  return { ...tail, list: [...tail.list, ...fresh].slice(-limit), seen: tail.seen + fresh.length, missed: tail.missed + missed }
}

/** Follows a bucket. */
export function useTail(bucket: string, filter: string, limit: number): Tail {
  const { up } = useConnection()
  const [tail, set] = useState(emptyTail)
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    if (!up) return
    const stop = new AbortController()
    let waiting: Message[] = []
    let timer: number | undefined
    const show = () => {
      window.clearTimeout(timer)
      timer = undefined
      const taken = waiting
      waiting = []
      set((old) => grown(old, taken, limit))
    }
    const messages = new Messages()
    const take = (text: string) => {
      waiting.push(...messages.push(text))
      set((old) => (old.open ? old : { ...old, open: true, error: undefined }))
      if (waiting.length > most) show()
      timer ??= window.setTimeout(show, draw)
    }
    const follow = async () => {
      let error: string | undefined
      try {
        await followEvents(bucket, filter, stop.signal, take)
      } catch (e) {
        if (stop.signal.aborted) return
        if (!(e instanceof Unreachable || e instanceof TypeError)) error = (e as Error).message // a TypeError is a connection that broke
      }
      if (stop.signal.aborted) return
      show()
      set((old) => ({ ...old, open: false, error, broken: old.broken + (old.open ? 1 : 0) }))
      timer = window.setTimeout(() => setTurn((n) => n + 1), again)
    }
    void follow()
    return () => {
      stop.abort()
      window.clearTimeout(timer)
    }
  }, [bucket, filter, limit, up, turn])
  return tail
}
