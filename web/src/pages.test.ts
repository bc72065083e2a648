import { expect, it } from 'vitest'
import { byLabel, type AccountRow, type Fn, type Plan, type Segment, type Target } from './api'
import { pointsIn } from './buckets/create'
import { byMinute, inSegments } from './buckets/figures'
import { runnable } from './functions/page'
import { layers } from './node/account'
import { amount } from './node/page'
import { indexOfByte } from './query/editor'
import { branches, summary } from './query/plan'
import { byJob, upOf, words } from './targets/page'

const row = (bucket: string, minute: number, accepted: number, refused: Record<string, number> = {}): AccountRow =>
  ({ bucket, minute, received: 0, accepted, duplicate: 0, conflicting: 0, late: 0, unset: 0, refused })

it('stacks every reason', () => {
  const rows = [row('a', 99, 5, { future: 2 }), row('b', 99, 7), row('a', 100, 1, { expired: 1 }), row('a', 10, 1000)]
  const all = layers(rows, '', 100)
  expect(all.map((l) => [l.name, l.total])).toEqual([['accepted', 13], ['refused: expired', 1], ['refused: future', 2]])
  expect(all[0]!.values.slice(-2)).toEqual([12, 1])
  expect(layers(rows, 'b', 100).map((l) => l.name)).toEqual(['accepted'])
})

it('gives a rate to every minute', () => {
  const rates = byMinute([row('a', 99, 120), row('a', 100, 60)], 100)
  expect(rates.length).toBe(60)
  expect(rates.at(-1)).toBe(2)
  expect(rates.at(0)).toBe(0)
})

it('shares the points of a segment by bytes', () => {
  const s = (file: string, points: number, chunk_bytes: number): Segment => ({ file, points, chunk_bytes, bytes: 0, series: 0, from_ms: 0, to_ms: 0 })
  expect(inSegments([s('w', 100, 50)], [s('w', 100, 50)])).toEqual({ bytes: 50, points: 100, shared: false })
  expect(inSegments([s('f', 100, 25)], [s('f', 100, 100)])).toEqual({ bytes: 25, points: 25, shared: true })
  expect(inSegments([], [])).toEqual({ bytes: 0, points: 0, shared: false })
})

it('makes examples run on this node', () => {
  const f = (example: string, ...signature: string[]) => runnable({ example, signature } as Fn, { one: 'x BUCKET b', many: 'x BUCKET b, y BUCKET b' })
  expect(f('avg(web.eu.requests BUCKET shop, 5s)', 'metric', 'time')).toBe('SELECT avg(x BUCKET b, 5s) LAST 5m')
  expect(f('sum(web.*.requests BUCKET shop)', 'metric*')).toBe('SELECT sum(x BUCKET b, y BUCKET b) LAST 5m')
})

it('turns spans into points', () => {
  expect([pointsIn('1w', 1000), pointsIn(' 90s ', 60_000), pointsIn('1s', 60_000), pointsIn('x', 1)]).toEqual([604_800, 1, undefined, undefined])
})

it('writes a step of a plan out once', () => {
  const step = (id: number, inputs?: number[]) => ({ id, name: `${id}`, resolution: 1, values: 1, uses: 1, time_us: 1, inputs })
  const plan: Plan = { fields: [3, 1], steps: [step(1), step(2), step(3, [1, 2])], rounds: 1, slots: 1, memory: 1 }
  const [first, second] = branches(plan)
  expect(first!.inputs.map((b) => [b.step.id, b.before])).toEqual([[1, false], [2, false]])
  expect([second!.step.id, second!.before]).toEqual([1, true])
})

it('sums up a plan of series, of events and of both', () => {
  const steps = [{ id: 1, name: 'read', resolution: 1, values: 1, uses: 1, time_us: 1 }]
  const read = (found: number) => ({ name: 'EVENTS', files: 1, blocks: 2, bytes: 3, in_memory: 4, read: 5, found, limit: 6, lost: 0, time_us: 7 })
  const plan: Plan = { fields: [], steps: [], rounds: 1, slots: 1, memory: 1024 }
  expect(summary(plan)).toBe('nothing is read')
  expect(summary({ ...plan, events: [read(1), read(2)] })).toBe('10 events read, 3 found')
  expect(summary({ ...plan, fields: [1], steps })).toBe('1 step in 1 round of up to 1 slots, charged with 1 KiB of memory')
  expect(summary({ ...plan, fields: [1], steps, events: [read(0)] })).toMatch(/^1 step .*; 5 events read, 0 found$/)
})

it('finds the index of a byte', () => {
  expect([indexOfByte('aé💥b', 0), indexOfByte('aé💥b', 3), indexOfByte('aé💥b', 7), indexOfByte('ab', 9)]).toEqual([0, 2, 4, 2])
})

it('finds the figures of a family by their label', () => {
  const stats = [{ name: 'series', value: 9 }, { name: 'bucket_series{bucket="a \n"}', value: 1 }, { name: 'bucket_series{bucket="}"}', value: 2 }, { name: 'bucket_series_total{bucket="x"}', value: 3 }]
  expect(byLabel(stats, 'bucket_series')).toEqual([['a \n', 1], ['}', 2]])
})

it('counts files of a pool that holds no bytes', () => {
  const pool = { name: 'segment-files', holds: '', bytes: 12, limit: 1024, unit: 'files' }
  expect([amount(pool, pool.bytes), amount({ ...pool, unit: undefined }, pool.limit)]).toEqual(['12 files', '1 KiB'])
})

it('finds targets by all that is said of them', () => {
  const t = (scrapePool: string, health: Target['health'], labels: Record<string, string>): Target =>
    ({ discoveredLabels: {}, labels, scrapePool, scrapeUrl: 'http://a/metrics', lastError: '', lastScrape: '', lastScrapeDuration: 0, health, scrapeInterval: '1s', scrapeTimeout: '1s' })
  const list = [t('b', 'up', { room: 'R1' }), t('a', 'down', {}), t('b', 'up', {})]
  expect(byJob(list).map(([job, of]) => [job, of.length])).toEqual([['b', 2], ['a', 1]])
  expect(list.filter((one) => words(one).includes('room=r1')).length).toBe(1)
  expect(list.filter((one) => words(one).includes('down')).length).toBe(1)
  expect(upOf(t('b', 'up', { job: "it's", room: 'r' }), 'prometheus')).toBe(`SELECT up FROM prometheus WHERE job = 'it\\'s' AND room = r LAST 15m`)
})
