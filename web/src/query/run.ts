import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { runQuery, Problem, Unreachable, type Missing, type Plan, type Unmatched } from '../api'
import { findRange, withRange } from '../dql/range'
import { useConnection } from '../hooks'
import type { View } from '../url'
import { askFitting, type Fit } from './columns'
import { chartData, marksOf, pointsOf, type ChartData } from './data'
import type { Mistake } from './editor'

export interface Answer {
  query: string
  data: ChartData
  missing: Missing[]
  unmatched: Unmatched[]
  plan?: Plan
  points: number
  queryMs: number // in the node
  tookMs: number // until the last byte was here
}

export interface Run {
  answer?: Answer
  error?: string
  mistake?: Mistake
  busy: boolean
  since: number // performance.now() of the question under way
  id: string // of that question, for the node
  cancel: () => void // gives it up: the node stops as well
}

interface Wish {
  query: string // '' runs nothing
  turn: number // one more runs the same query again
  view: View
  every: boolean
  older: boolean
  live: boolean
  width: number // of the chart in pixels
}

const tick = 1000 // ms between two answers of the live mode

/**
 * Runs the query that is wished for, and in live mode every second again. The
 * last answer stays until there is the next.
 */
export function useRun(w: Wish): Run {
  const [run, set] = useState<Omit<Run, 'cancel'>>({ busy: false, since: 0, id: '' })
  const stopped = useRef(new AbortController())
  const { epoch } = useConnection()
  const latest = useRef(w)
  latest.current = w
  const column = useRef(0) // ms per column of the last answer, 0 when it is not reduced
  const fit = useRef<Fit>(undefined) // of the last answer to this query

  const once = useCallback(async (query: string, id: string, signal: AbortSignal) => {
    const { view, every, older, live, width } = latest.current
    // Fewer columns than pixels have the length of an interval: the node lets them begin at multiples of it.
    const text = live && !(fit.current && fit.current.width < width) ? steady(query, column.current, Date.now()) : query
    try {
      const ask = (most: number) => runQuery(text, view === 'plan' ? { explain: true, older, id, signal } : { width: every ? undefined : Math.min(width, most), older, id, signal })
      const { reply, fit: fitting } = await askFitting(ask, query, fit.current)
      // The answer of a query whose plan is asked for has no values.
      const data = { ...chartData({ ...reply.value, results: reply.value.results ?? [] }), events: marksOf(reply.value, reply.text) }
      fit.current = fitting
      column.current = data.reduced ? (data.lines[0]?.resolution ?? 0) : 0
      set({
        busy: false, since: 0, id: '',
        answer: {
          query, data, missing: reply.value.missing ?? [], unmatched: reply.value.unmatched ?? [], plan: reply.value.plan, points: pointsOf(data), queryMs: reply.value.query_time / 1000, tookMs: reply.took,
        },
      })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Unreachable) return set((old) => ({ ...old, busy: false }))
      const at = error instanceof Problem ? error.position : undefined
      // A live query that fails once keeps its picture.
      set((old) => ({
        busy: false, since: 0, id: '', answer: live ? old.answer : undefined, error: (error as Error).message,
        mistake: at && { offset: at.offset, message: (error as Error).message, query },
      }))
    }
  }, [])

  useEffect(() => {
    column.current = 0
    fit.current = undefined
    if (!w.query.trim()) return set({ busy: false, since: 0, id: '' })
    const stop = new AbortController()
    stopped.current = stop
    const id = crypto.randomUUID?.() ?? String(Math.random())
    let timer: number | undefined
    const loop = async () => {
      const began = performance.now()
      if (!document.hidden) await once(w.query, id, stop.signal)
      if (latest.current.live && !stop.signal.aborted) timer = window.setTimeout(loop, Math.max(50, tick - (performance.now() - began)))
    }
    set((old) => ({ ...old, busy: true, since: performance.now(), id }))
    void loop()
    return () => {
      stop.abort()
      window.clearTimeout(timer)
    }
  }, [w.query, w.turn, w.view === 'plan', w.every, w.older, w.live, epoch])
  const cancel = useCallback(() => {
    stopped.current.abort()
    set((old) => ({ ...old, busy: false, error: 'The query was cancelled.' }))
  }, [])
  return { ...run, cancel }
}

/**
 * In live mode the columns of a reduced answer begin at multiples of their
 * length: they would flicker if they moved a bit each second.
 */
export function steady(query: string, columnMs: number, now: number): string {
  const range = findRange(query)?.range
  if (range?.kind !== 'last' || columnMs <= tick) return query
  const from = Math.floor((now - range.span) / columnMs) * columnMs
  return withRange(query, { kind: 'between', from, to: Math.floor(now / 1000) * 1000 })
}
