import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Unreachable } from './api'
import { connection } from './connection'

/** Whether the node answers, and how often it came back. */
export function useConnection(): { up: boolean; epoch: number } {
  const [state, set] = useState({ up: connection.up, epoch: connection.epoch })
  useEffect(() => connection.subscribe(() => set({ up: connection.up, epoch: connection.epoch })), [])
  return state
}

export interface Loaded<T> {
  value?: T
  error?: string
  reload: () => void
}

/**
 * Loads something, again when what it depends on changes, when the node comes
 * back, and every so many ms. The old value stays until there is a new one.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], every = 0): Loaded<T> {
  const { epoch } = useConnection()
  const [state, set] = useState<{ value?: T; error?: string }>({})
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const stop = new AbortController()
    let timer: number | undefined
    let loaded = false
    const once = async () => {
      try {
        // Nobody looks at a hidden page; the first answer is for when somebody does.
        if (!document.hidden || !loaded) set({ value: await latest.current(stop.signal) })
        loaded = true
      } catch (error) {
        if (stop.signal.aborted) return
        // A node that is gone is shown for the whole page; what was known stays.
        if (!(error instanceof Unreachable)) set((old) => ({ ...old, error: (error as Error).message }))
      }
      if (every && !stop.signal.aborted) timer = window.setTimeout(once, every)
    }
    void once()
    return () => {
      stop.abort()
      window.clearTimeout(timer)
    }
  }, [...deps, epoch, turn, every])
  return { ...state, reload: useCallback(() => setTurn((n) => n + 1), []) }
}

/** A value that is kept in this browser. */
export function useStored<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, set] = useState<T>(() => stored(key, initial))
  return [
    value,
    (next: T) => {
      set(next)
      store(key, next)
    },
  ]
}

export function stored<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(`dalmatiner.${key}`)
    return text === null ? initial : (JSON.parse(text) as T)
  } catch {
    return initial // storage is forbidden, or holds what is not ours
  }
}

export function store(key: string, value: unknown): void {
  try {
    localStorage.setItem(`dalmatiner.${key}`, JSON.stringify(value))
  } catch {
    // full or forbidden: the page works without it
  }
}
