// How many columns to ask for: columns that are shorter than the interval of a slow sender would
// be empty between its points.

import type { Reply, Result, Series } from '../api'
import { findRange, type Range } from '../dql/range'

export interface Fit {
  interval: number // ms between the points of the fastest sender of the query
  width: number // the most columns that are at least as long
}

/** The columns that fit the answer to a query; undefined where no series has columns and two points. */
export function fitOf(query: string, series: Series[]): Fit | undefined {
  const columns = series.filter((s) => s.min)
  const interval = Math.min(...columns.flatMap((s) => s.interval ?? []))
  if (interval === Infinity) return undefined
  const slot = Math.min(...columns.map((s) => s.bucket_resolution ?? s.resolution))
  if (interval <= slot) return { interval, width: Infinity }
  const range = findRange(query)?.range ?? { kind: 'other' }
  // Columns are whole slots: those that are longer than the interval less a slot are long enough.
  const most = Math.max(1, Math.ceil(lengthOf(range, columns) / (interval - slot)) - 1)
  return { interval, width: isMoved(range, interval) ? most + 1 : most }
}

/** The length of a range in ms. The last column of an answer may end behind it. */
function lengthOf(range: Range, columns: Series[]): number {
  if (range.kind === 'last') return range.span
  if (range.kind === 'between') return range.to - range.from
  return Math.max(...columns.map((s) => (s.values.length - 1) * s.resolution))
}

/**
 * Whether the node moves the begin of a range to a multiple of columns of a length (align=1): it
 * keeps one of the columns that it is asked for to fill up the end. Where that is not known, the
 * columns may be a bit longer.
 */
function isMoved(range: Range, column: number): boolean {
  return range.kind === 'last' || (range.kind === 'between' && range.from % column !== 0)
}

/**
 * Asks for the columns that fitted the last answer, and once more when the new one shows that
 * they are shorter than the interval of the sender: nobody sees that one. As long as the interval
 * stays the same, so do the columns.
 */
export async function askFitting(ask: (most: number) => Promise<Reply<Result>>, query: string, last?: Fit): Promise<{ reply: Reply<Result>; fit?: Fit }> {
  const reply = await ask(last?.width ?? Infinity)
  const series = reply.value.results ?? [] // there are none with a plan
  const fit = fitOf(query, series)
  if (!fit || fit.interval === last?.interval) return { reply, fit: last }
  const short = series.some((s) => s.min && s.resolution < fit.interval)
  return { reply: short ? await ask(fit.width) : reply, fit }
}
