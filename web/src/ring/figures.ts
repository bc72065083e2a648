import type { Audit, Move, Staging, Transfer } from '../api'
import { count, duration } from '../format'

/** The partitions that one member takes from another. */
export interface Pair {
  from: string
  to: string
  partitions: number[]
}

/** Moves by pair of members; of several owners the first is named, as ddb admin cluster ring does. */
export function byPair(moves: Move[]): Pair[] {
  const pairs = new Map<string, Pair>()
  for (const { partition, from, to } of moves) {
    const key = JSON.stringify([from[0], to])
    const pair = pairs.get(key) ?? { from: from[0] ?? '', to, partitions: [] }
    pair.partitions.push(partition)
    pairs.set(key, pair)
  }
  return [...pairs.values()]
}

/** The share of a transfer that has arrived; undefined when its size is not known. */
export function progress(t: Transfer): number | undefined {
  return t.size > 0 ? Math.min(1, t.bytes / t.size) : undefined
}

/** The figures of ddb admin audit. */
export function auditFacts(a: Audit): [string, string][] {
  const compared = a.partitions.filter((p) => !p.never)
  const oldest = Math.max(0, ...compared.map((p) => p.ago_s))
  return [
    ['Partitions that this node compares', count(a.partitions.length)],
    ['Not yet compared with all copies', count(a.partitions.length - compared.length)],
    ['Longest time since a comparison', compared.length ? duration(Math.floor(oldest) * 1000) : '–'],
    ['Comparisons with another member', count(a.comparisons)],
    ['Chunks compared', count(a.chunks)],
    ['Chunks that differed', count(a.differences)],
    ['Points copied because of that', count(a.repaired)],
    ['Points moved with partitions', count(a.moved)],
    ['Batches kept for members that were down', count(a.hints_kept)],
    ['Of these delivered', count(a.hints_delivered)],
    ['Of these still here', count(a.hints)],
  ]
}

/** The body of a request that stages a change; undefined while something is missing. */
export function body(what: Staging, node: string, next: string, n: string): { node?: string; new?: string; n?: number } | undefined {
  if (what === 'set-n') return /^([1-9]|1[0-5])$/.test(n) ? { n: Number(n) } : undefined
  if (!node || (what === 'replace' && !next)) return undefined
  return what === 'replace' ? { node, new: next } : { node }
}
