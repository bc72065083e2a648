import { api, byLabel, type AccountRow, type Bucket, type Segment } from '../api'
import { duration } from '../format'

export interface InSegments {
  bytes: number // of chunks
  points: number
  shared: boolean // the points are partly a share of segments of many buckets
}

export interface Figures {
  series: number
  points: number // stored since the data directory was made
  rate: number // points stored per second, in the last whole minute
  minutes: number[] // points stored per second in each of the last minutes, oldest first
  total?: AccountRow
}

const shownMinutes = 60

const stored = (r: AccountRow) => r.accepted + r.duplicate + r.conflicting + r.late

/** Everything about all buckets that is no property of theirs, by name. */
export async function figuresOf(signal: AbortSignal): Promise<Map<string, Figures>> {
  const [stats, account, rows] = await Promise.all([api.stats(signal), api.account(signal), api.minutes(shownMinutes + 1, signal)])
  const names = account.rows.map((r) => r.bucket).filter((name) => name !== '')
  const series = new Map(byLabel(stats, 'bucket_series'))
  const now = Math.floor(Date.now() / 60_000)
  return new Map(names.map((name) => {
    const total = account.rows.find((r) => r.bucket === name)
    const minutes = byMinute(rows.rows.filter((r) => r.bucket === name), now)
    return [name, {
      series: series.get(name) ?? 0, points: total ? total.accepted + total.late : 0, total,
      minutes, rate: minutes.at(-1) ?? 0,
    }]
  }))
}

/** What buckets have on disk. The node reads the indexes of all segments for it, so they are asked for one by one, and seldom. */
export async function segmentsOf(names: string[], signal: AbortSignal): Promise<Map<string, InSegments>> {
  const all = await api.segments('', signal)
  const out = new Map<string, InSegments>()
  for (const name of names) {
    const own = await api.segments(name, signal).catch(() => undefined) // deleted meanwhile
    if (own) out.set(name, inSegments(own, all))
  }
  return out
}

/** Points per second of the whole minutes before now. */
export function byMinute(rows: AccountRow[], now: number): number[] {
  const known = new Map(rows.map((r) => [r.minute, stored(r) / 60]))
  return Array.from({ length: shownMinutes }, (_, i) => known.get(now - shownMinutes + i) ?? 0)
}

/**
 * The bytes of a bucket in segments, and the points in them: exact where a
 * segment holds that bucket alone, else its share by bytes.
 */
export function inSegments(own: Segment[], all: Segment[]): InSegments {
  const whole = new Map(all.map((s) => [s.file, s.chunk_bytes]))
  let [bytes, points, shared] = [0, 0, false]
  for (const s of own) {
    bytes += s.chunk_bytes
    const of = whole.get(s.file) ?? s.chunk_bytes
    if (of > s.chunk_bytes) shared = true
    points += of > 0 ? (s.points * s.chunk_bytes) / of : 0
  }
  return { bytes, points, shared }
}

export function ttlText(b: Bucket): string {
  return b.ttl === 'infinity' ? 'forever' : duration(b.ttl * b.resolution)
}

export function bitsText(d: InSegments): string {
  return d.points ? `${d.shared ? '≈ ' : ''}${((d.bytes * 8) / d.points).toFixed(2)}` : '–'
}
