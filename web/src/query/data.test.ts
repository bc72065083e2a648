import { describe, expect, it } from 'vitest'
import type { Result, Series } from '../api'
import { chartData, colorOf, endedLast, endText, marksOf, pointsOf, slowness, statsOf, unknownText } from './data'
import { csv } from './export'
import { steady } from './run'

const series = (name: string, resolution: number, values: (number | null)[], more: Partial<Series> = {}): Series => ({ type: 'metrics', name, resolution, values, coverage: 1, ...more })
const result = (...results: Series[]): Result => ({ start: 10_000, query_time: 5, results })

describe('chartData', () => {
  it('keeps gaps as gaps', () => {
    const d = chartData(result(series('a', 1000, [1, null, 3])))
    expect(d.x).toEqual([10, 11, 12])
    expect(d.lines[0]!.values).toEqual([1, null, 3])
    expect(d.lines[0]!.stats).toEqual({ min: 1, max: 3, avg: 2, last: 3, points: 2 })
    expect([d.start, d.end]).toEqual([10_000, 13_000])
  })
  it('brings resolutions together: no value of its own is no gap', () => {
    const d = chartData(result(series('a', 1000, [1, 2, 3, 4]), series('b', 2000, [5, null])))
    expect(d.x).toEqual([10, 11, 12, 13])
    expect(d.lines[1]!.values).toEqual([5, undefined, null, undefined])
    expect(pointsOf(d)).toBe(5)
  })
  it('puts spans of the calendar where they begin', () => {
    const h = 3_600_000
    const d = chartData(result(series('a', 24 * h, [1, null, 3], { times: [10_000, 24 * h, 47 * h] }), series('b', 24 * h, [4, 5, 6], { times: [10_000, 24 * h, 47 * h] })))
    expect(d.x).toEqual([10, 24 * 3600, 47 * 3600])
    expect(d.lines.map((l) => l.values)).toEqual([[1, null, 3], [4, 5, 6]])
    expect([d.start, d.end]).toEqual([10_000, 71 * h])
    expect(csv(result(series('a', 24 * h, [1], { times: [24 * h] })))).toBe('time,a\r\n1970-01-02T00:00:00.000Z,1\r\n')
  })
  it('leaves events to the marks', () => {
    const value = { type: 'events', name: 'e', metadata: {}, values: [{ timestamp: 11_000_000_000, event: {} }] } as unknown as Series
    const both = result(series('a', 1000, [1]), value)
    expect(chartData(both).lines.map((l) => l.name)).toEqual(['a'])
    expect(csv(both).split('\r\n')[0]).toBe('time,a')
    expect(marksOf(both, JSON.stringify(both))).toEqual([{ name: 'e', list: [{ time: 11_000_000_000n, body: '{}' }], damaged: [], color: colorOf(1) }])
    expect(chartData(result(value))).toMatchObject({ x: [], lines: [], start: 10_000, end: 10_000 })
    expect(marksOf(result(series('a', 1000, [1])), 'no JSON, and not looked at')).toEqual([])
  })
  it('takes extremes of columns from min and max', () => {
    const d = chartData(result(series('a', 60_000, [2, 3], { min: [-50, 1], max: [3, 900] })))
    expect(d.reduced).toBe(true)
    expect(d.lines[0]!.stats).toMatchObject({ min: -50, max: 900, avg: 2.5 })
  })
  it('ends a shorter series with gaps', () => {
    expect(chartData(result(series('a', 1000, [1]), series('b', 1000, [1, 2]))).lines[0]!.values).toEqual([1, null])
  })
  it('takes units from the metadata', () => {
    expect(chartData(result(series('a', 1000, [1], { metadata: { unit: 'B' } }), series('b', 1, [], { metadata: { unit: 3 } }))).lines.map((l) => l.unit)).toEqual(['B', ''])
  })
  it('says how often a sender sends that is slower than its bucket', () => {
    const slow = (interval: number | null, coverage = 1) => chartData(result(series('a', 1000, [null, 1, null, null, 2], { coverage, bucket_resolution: 1000, interval }))).lines[0]!
    expect(slowness(slow(3000))).toBe('every 3 s in a 1 s bucket')
    expect([1000, null].map((interval) => slowness(slow(interval)))).toEqual(['', ''])
    // The coverage knows the interval already; gaps are no points.
    expect(slow(3000)).toMatchObject({ coverage: 1, partial: false, stats: { points: 2 }, values: [null, 1, null, null, 2] })
    expect(slow(3000, 0.5)).toMatchObject({ coverage: 0.5, partial: true })
  })
  it('puts those last that have ended, and says when that was', () => {
    const { lines } = chartData(result(
      series('gone', 1000, [1, null], { ended: true, last_point: 10_000 }), series('a', 1000, [1, 2], { last_point: 11_000 }),
      series('never', 1000, [null, null], { ended: true, coverage: 0 }), series('b', 1000, [3, 4])))
    expect(endedLast(lines).map((l) => l.name)).toEqual(['a', 'b', 'gone', 'never'])
    expect(endedLast(lines).map((l) => endText(l, true))).toEqual(['', '', 'Ended: the last point was at 1970-01-01 00:00:10', 'Ended: no point in this range'])
  })
  it('tells the series of a pattern apart by what its stars stand for', () => {
    const d = chartData(result(series("'web'.* BUCKET 'b'", 1000, [], { stars: ['eu'] }), series("'web'.* BUCKET 'b'", 1000, [], { stars: ['us'] }), series('x', 1000, [], { stars: ['y'] })))
    expect(d.lines.map((l) => l.name)).toEqual(["'web'.'eu' BUCKET 'b'", "'web'.'us' BUCKET 'b'", 'x'])
  })
  it('puts columns at the times where they begin', () => {
    // Columns of added up points begin at multiples of their length, before the range.
    const d = chartData(result(series('a', 4000, [1, 2], { start: 8000 })))
    expect([d.x, d.start, d.end]).toEqual([[8, 12], 8000, 16_000])
    const two = chartData(result(series('a', 4000, [1, 2], { start: 8000 }), series('b', 4000, [3, null], { start: 10_000 })))
    expect(two.x).toEqual([8, 10, 12, 14])
    expect(two.lines.map((l) => l.values)).toEqual([[1, undefined, 2, undefined], [undefined, 3, undefined, null]])
  })
  it('says what damage took', () => {
    const lost = { unknown: { slots: 3, ranges: [[11_000, 14_000]] as [number, number][], why: ['damage in x'] } }
    const at = (r: Result) => {
      const d = chartData(r)
      return d.x.map((_, i) => unknownText(d.lines[0]!, d, i))
    }
    expect(at(result(series('a', 1000, [1, null, null, null, 5], lost)))).toEqual(['', 'unknown', 'unknown', 'unknown', ''])
    expect(at(result(series('a', 2000, [1, null, 3], lost)))).toEqual(['partly unknown', 'unknown', ''])
    expect(at({ ...result(series('a', 1000, [1, 2, 3, 4, 5], lost)), damaged: 'shown' })).toEqual(['', 'older', 'older', 'older', ''])
    // A range that begins within a slot.
    expect(at({ ...result(series('a', 1000, [1, null, 2], { unknown: { ...lost.unknown, ranges: [[11_000, 12_000]] } })), start: 10_400 })).toEqual(['', 'unknown', ''])
    expect(chartData(result(series('a', 1000, [1], lost))).lines[0]!.partial).toBe(true)
  })
  it('draws nothing of nothing', () => expect(chartData(result())).toMatchObject({ x: [], lines: [] }))
})

it('has figures of nothing', () => expect(statsOf([null, undefined])).toEqual({ min: null, max: null, avg: null, last: null, points: 0 }))
it('gives every series a colour of its own', () => expect(new Set(Array.from({ length: 200 }, (_, i) => colorOf(i))).size).toBe(200))

it('writes CSV', () => {
  expect(csv(result(series("'a' BUCKET 'b'", 1000, [1.5, null]), series('x, "y"', 1000, [null, 1e21])))).toBe(
    `time,'a' BUCKET 'b',"x, ""y"""\r\n1970-01-01T00:00:10.000Z,1.5,\r\n1970-01-01T00:00:11.000Z,,1e+21\r\n`)
})

describe('steady', () => {
  it('begins columns at multiples of their length', () => {
    const starts = new Set<string>()
    for (let now = 1_795_176_000_000; now < 1_795_176_060_000; now += 1000) {
      starts.add(/BETWEEN ("[^"]+")/.exec(steady('SELECT x BUCKET b LAST 1d', 60_000, now))![1]!)
    }
    expect(starts.size).toBeLessThanOrEqual(2)
  })
  it('leaves a query alone whose columns are values', () => {
    expect(steady('SELECT x BUCKET b LAST 5m', 1000, 5)).toBe('SELECT x BUCKET b LAST 5m')
    expect(steady('SELECT x BUCKET b BETWEEN 1 AND 2', 60_000, 5)).toBe('SELECT x BUCKET b BETWEEN 1 AND 2')
  })
})
