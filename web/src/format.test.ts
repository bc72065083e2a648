import { expect, it } from 'vitest'
import { bytes, count, duration, moment, percent, si, tickTexts } from './format'

it('numbers', () => {
  const of: [number | null, string][] = [
    [null, '–'], [0, '0'], [1, '1'], [-1.23456, '-1.235'], [9999, '9999'], [12345, '12.35 k'], [999_960, '1 M'], [1.5e9, '1.5 G'], [-2e6, '-2 M'],
    [0.05, '0.05'], [0.00042, '420 µ'], [3e-7, '300 n'], [1e25, '1.00e+25'],
  ]
  for (const [v, text] of of) expect(si(v)).toBe(text)
  expect([si(0.18, 'percent'), si(0.5, '%'), ...tickTexts([0, 0.2], 'percent')]).toEqual(['0.18 percent', '0.5 %', '0', '0.2 percent'])
  expect([si(1500, 'B'), si(15_000, 'B'), si(0.0005, 's'), si(0.25, 's'), si(0, 's')]).toEqual(['1500 B', '15 kB', '500 µs', '250 ms', '0 s'])
})

it('sizes, counts, shares', () => {
  expect([bytes(0), bytes(1023), bytes(1536), bytes(5 * 1024 ** 3)]).toEqual(['0 B', '1023 B', '1.5 KiB', '5 GiB'])
  expect(count(1234567)).toBe('1\u202f234\u202f567')
  expect([percent(1), percent(0.99999), percent(0.5), percent(0)]).toEqual(['100 %', '99.9 %', '50 %', '0 %'])
})

it('durations', () => {
  expect([duration(0.05), duration(1.234), duration(1500), duration(60_000), duration(3_660_000), duration(90_000_000), duration(604_800_000)])
    .toEqual(['50 µs', '1.23 ms', '1.5 s', '1 min', '1 h 1 min', '1 d 1 h', '7 d'])
})

it('moments', () => {
  expect(moment(1_795_176_000_000, true)).toBe('2026-11-20 12:00:00')
  expect(moment(1_795_176_000_005, true)).toBe('2026-11-20 12:00:00.005')
  expect(moment(new Date(2026, 0, 2, 3, 4, 5).getTime(), false)).toBe('2026-01-02 03:04:05')
})

it('ticks that are told apart', () => {
  expect(tickTexts([281_000_000, 281_050_000, 281_100_000])).toEqual(['281.00 M', '281.05 M', '281.10 M'])
  expect(tickTexts([0, 50, 100])).toEqual(['0', '50', '100'])
  expect(tickTexts([0, 2.5, 5])).toEqual(['0', '2.5', '5'])
  expect(tickTexts([0, 0.001, 0.002], 's')).toEqual(['0', '1 ms', '2 ms'])
  for (let e = -9; e < 18; e++) {
    for (const step of [1, 2, 2.5, 5]) {
      for (const from of [0, 100, -3]) {
        const ticks = Array.from({ length: 8 }, (_, i) => (from + i * step) * 10 ** e)
        expect(new Set(tickTexts(ticks)).size, `${ticks}`).toBe(8)
      }
    }
  }
})
