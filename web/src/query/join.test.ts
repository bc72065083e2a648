import { expect, it } from 'vitest'
import type { Series } from '../api'
import { chartData, type Values } from './data'
import { alone, joined } from './join'

/** What is drawn of a series: numbers, '-' where a line passes over, '_' for a gap. */
function drawn(values: Values, more: Partial<Series>, others: Series[] = []): string {
  const s = { type: 'metrics', name: 'a', resolution: 1000, bucket_resolution: 1000, values, coverage: 1, ...more } as Series
  const data = chartData({ start: 1_795_176_000_000, query_time: 1, results: [s, ...others] })
  return joined(data.lines[0]!, data.x).map((v) => (v === undefined ? '-' : v === null ? '_' : v)).join('')
}
const n = null

it('joins the points of a slow sender, and leaves out those that are missing', () => {
  const tens = [n, 1, ...Array(9).fill(n), 2, ...Array(10).fill(n), 3, ...Array(19).fill(n), 4, n]
  expect(drawn(tens, { interval: 10_000 })).toBe('_1---------2----------3___________________4_')
})
it('joins up to one and a half intervals, and nothing of a sender whose interval is not known', () => {
  expect(drawn([1, n, n, 2, n, n, n, 3], { interval: 2000 })).toBe('1--2___3')
  expect(drawn([1, n, 2], { interval: 1000 })).toBe('1_2')
  for (const interval of [null, undefined]) expect(drawn([1, n, 2], { interval })).toBe('1_2')
})
it('joins columns whose points may be as close', () => {
  // Columns of 10 s: points that are 11 s apart may leave one out. Two are 21 s at least.
  expect(drawn([1, n, 2, n, n, 3], { resolution: 10_000, interval: 10_000 })).toBe('1-2__3')
  // Columns of 4 s: the points of 1 and 2 are 5 s to 11 s apart, those of 2 and 3 at least 13 s.
  expect(drawn([1, n, 2, n, n, n, 3], { resolution: 4000, interval: 5000 })).toBe('1-2___3')
  // A column of a minute without a point of a sender that sends every second is a gap.
  expect(drawn([1, n, 2], { resolution: 60_000, interval: 1000 })).toBe('1_2')
})
it('lets times of other series belong to the gap or to the line', () => {
  const other = (count: number): Series => ({ type: 'metrics', name: 'b', resolution: 1000, values: Array(count).fill(7), coverage: 1 })
  expect(drawn([1, n, n, 2, 3, n], { resolution: 2000, interval: 2000 }, [other(12)])).toBe('1_____2-3___')
  expect(drawn([1, n, 2, 3], { resolution: 2000, interval: 4000 }, [other(8)])).toBe('1---2-3_')
})
it('finds values that no line shows', () => {
  expect(alone([5, n, 5, 5, n, 5, undefined, 5, n, 5])).toEqual([0, 9])
  expect(alone([n, 5, n])).toEqual([1])
  expect(alone([5])).toEqual([0])
  expect(alone([n, undefined])).toEqual([])
})
