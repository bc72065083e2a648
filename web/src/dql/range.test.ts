import { describe, expect, it } from 'vitest'
import { findRange, rangeText, spanMs, spanText, withRange } from './range'

const h = 3_600_000

describe('findRange', () => {
  it.each([
    ['SELECT a BUCKET b LAST 1h', 'LAST 1h', { kind: 'last', span: h }],
    ['SELECT a BUCKET b LAST 1h30m TOP 2 BY max()', 'LAST 1h30m', { kind: 'last', span: 1.5 * h }],
    ['SELECT a BUCKET b LAST 90 s TOP 3 BY max()', 'LAST 90 s', { kind: 'last', span: 90_000 }],
    ['select max(last.x BUCKET b, 5s) last 10m', 'last 10m', { kind: 'last', span: 600_000 }],
    ['SELECT last(x BUCKET b, 5s) BETWEEN 1000 AND 5000', 'BETWEEN 1000 AND 5000', { kind: 'between', from: 1000, to: 5000 }],
    ['SELECT x BUCKET b BETWEEN 5000 AND 1000', 'BETWEEN 5000 AND 1000', { kind: 'between', from: 1000, to: 5000 }],
    ['SELECT x BUCKET b AFTER 1000 FOR 2s', 'AFTER 1000 FOR 2s', { kind: 'between', from: 1000, to: 3000 }],
    ['SELECT x BUCKET b BEFORE 5000 FOR 2s', 'BEFORE 5000 FOR 2s', { kind: 'between', from: 3000, to: 5000 }],
    ['SELECT x BUCKET b BETWEEN "1970-01-01 00:00:01" AND "1970-01-01T00:00:02Z"', 'BETWEEN "1970-01-01 00:00:01" AND "1970-01-01T00:00:02Z"', { kind: 'between', from: 1000, to: 2000 }],
    ['SELECT x BUCKET b LAST 1mo', 'LAST 1mo', { kind: 'other' }],
    ['SELECT x BUCKET b LAST 2h TZ "Europe/Zagreb" TOP 2 BY max()', 'LAST 2h', { kind: 'last', span: 2 * h }],
    ['SELECT x BUCKET b LAST 1d tz UTC', 'LAST 1d', { kind: 'other' }],
    ['SELECT x BUCKET b LAST 1 w TZ UTC', 'LAST 1 w', { kind: 'other' }],
    ['SELECT x BUCKET b AFTER "1970-01-01 00:00:01" FOR 1s TZ "Europe/Zagreb"', 'AFTER "1970-01-01 00:00:01" FOR 1s', { kind: 'other' }],
    ['SELECT x BUCKET b AFTER "1970-01-01T00:00:01Z" FOR 1s TZ "Europe/Zagreb"', 'AFTER "1970-01-01T00:00:01Z" FOR 1s', { kind: 'between', from: 1000, to: 2000 }],
    ['SELECT x BUCKET b BETWEEN NOW AND 2s AGO', 'BETWEEN NOW AND 2s AGO', { kind: 'other' }],
    ['SELECT x BUCKET b AFTER "Fri, 20 Nov 2026 07:00:03 EST" FOR 1h', 'AFTER "Fri, 20 Nov 2026 07:00:03 EST" FOR 1h', { kind: 'other' }],
  ])('%s', (text, clause, range) => {
    const found = findRange(text)!
    expect(text.slice(found.from, found.to)).toBe(clause)
    expect(found.range).toEqual(range)
  })

  it.each(['SELECT x BUCKET b', 'SELECT web.last BUCKET b', "SELECT 'LAST 1h' BUCKET b", 'SELECT x BUCKET b % LAST 1h', ''])('finds none in %s', (text) => {
    expect(findRange(text)).toBeUndefined()
  })
})

describe('withRange', () => {
  const last = { kind: 'last', span: h } as const
  it.each([
    ['SELECT x BUCKET b LAST 5m', 'SELECT x BUCKET b LAST 1h'],
    ['SELECT x BUCKET b BETWEEN 1 AND 2 TOP 2 BY max()', 'SELECT x BUCKET b LAST 1h TOP 2 BY max()'],
    ['SELECT x BUCKET b TOP 2 BY max()', 'SELECT x BUCKET b LAST 1h TOP 2 BY max()'],
    ['SELECT x BUCKET b % why', 'SELECT x BUCKET b % why\nLAST 1h'],
    ['SELECT x BUCKET b  ', 'SELECT x BUCKET b LAST 1h'],
    ['SELECT x BUCKET b LAST 1y TZ "Europe/Zagreb" TOP 2 BY max()', 'SELECT x BUCKET b LAST 1h TZ "Europe/Zagreb" TOP 2 BY max()'],
  ])('%s', (text, want) => expect(withRange(text, last)).toBe(want))

  it('writes what a time zone does not change', () => {
    const text = 'SELECT x BUCKET b LAST 1y TZ "Europe/Zagreb"'
    expect(withRange(text, { kind: 'between', from: 1000, to: 1500 })).toBe('SELECT x BUCKET b BETWEEN "1970-01-01T00:00:01Z" AND 1500 TZ "Europe/Zagreb"')
    expect(withRange(text, { kind: 'last', span: 48 * h })).toBe('SELECT x BUCKET b LAST 48h TZ "Europe/Zagreb"')
  })

  it('reads back every range that it writes', () => {
    for (const range of [last, { kind: 'between', from: 1_795_176_000_000, to: 1_795_179_600_000 }, { kind: 'between', from: 1_795_176_000_123, to: 1_795_176_000_999 }] as const) {
      expect(findRange(withRange('SELECT x BUCKET b', range))?.range).toEqual(range)
    }
  })
})

describe('spans', () => {
  it('are the shortest text of their length', () => {
    for (const text of ['1ms', '999ms', '1s', '90s', '1m', '90m', '1h', '36h', '1d', '1w', '52w']) {
      expect(spanMs(spanText(spanMs(text)!))).toBe(spanMs(text))
    }
    expect([spanText(7 * 86_400_000), spanText(90_000), spanText(0.2)]).toEqual(['1w', '90s', '1ms'])
    for (const text of ['', '1y', 'h', '1.5h', '30m1h', '1h1h', '1h30']) expect(spanMs(text)).toBeUndefined()
    expect(['1h30m', '1w1d1h1m1s1ms', '2m90s'].map(spanMs)).toEqual([5_400_000, 694_861_001, 210_000])
  })
  it('dates are in UTC and whole seconds', () => {
    expect(rangeText({ kind: 'between', from: 0, to: 1500 })).toBe('BETWEEN "1970-01-01 00:00:00" AND 1500')
  })
})
