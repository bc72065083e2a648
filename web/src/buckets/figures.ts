import { api, type AccountRow, type Segment } from '../api'

export interface Figures {
  series: number
  points: number // stored since the data directory was made
  bytes?: number // of chunks in segments
  segmentPoints: number // in segments
  shared: boolean // segmentPoints is partly a share of segments of many buckets
  rate: number // points stored per second, in the last whole minute
  minutes: number[] // points stored per second in each of the last minutes, oldest first
  total?: AccountRow
}

const shownMinutes = 60

const stored = (r: AccountRow) => r.accepted + r.duplicate + r.conflicting + r.late

/** Everything about all buckets that is no property of theirs, by name. */
export async function figuresOf(signal: AbortSignal): Promise<Map<string, Figures>> {
  const [stats, account, rows, segments] = await Promise.all([
    api.stats(signal), api.account(signal), api.minutes(shownMinutes + 1, signal), api.segments('', signal),
  ])
  const names = account.rows.map((r) => r.bucket).filter((name) => name !== '')
  const own = await Promise.all(names.map((name) => api.segments(name, signal).catch(() => [] as Segment[])))
  const series = new Map(stats.flatMap(({ name, value }) => {
    const found = /^bucket_series\{bucket="(.*)"\}$/s.exec(name)
    return found ? [[found[1]!, value] as const] : []
  }))
  const now = Math.floor(Date.now() / 60_000)
  return new Map(names.map((name, i) => {
    const total = account.rows.find((r) => r.bucket === name)
    const minutes = byMinute(rows.rows.filter((r) => r.bucket === name), now)
    return [name, {
      series: series.get(name) ?? 0, points: total ? total.accepted + total.late : 0, total,
      ...inSegments(own[i]!, segments), minutes, rate: minutes.at(-1) ?? 0,
    }]
  }))
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
export function inSegments(own: Segment[], all: Segment[]): Pick<Figures, 'bytes' | 'segmentPoints' | 'shared'> {
  const whole = new Map(all.map((s) => [s.file, s.chunk_bytes]))
  let [bytes, points, shared] = [0, 0, false]
  for (const s of own) {
    bytes += s.chunk_bytes
    const of = whole.get(s.file) ?? s.chunk_bytes
    if (of > s.chunk_bytes) shared = true
    points += of > 0 ? (s.points * s.chunk_bytes) / of : 0
  }
  return { bytes, segmentPoints: points, shared }
}
