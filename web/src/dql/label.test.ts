import { expect, it } from 'vitest'
import { withoutStars, withParts } from './label'

it.each([
  ['SELECT web.*.x BUCKET b LAST 1h', 'SELECT web.*.x BUCKET b METADATA {part2: $2} LAST 1h'],
  ['SELECT max(*.web.* BUCKET b, 5s) AS m, y BUCKET b LAST 1h', 'SELECT max(*.web.* BUCKET b, 5s) AS m METADATA {part1: $1, part3: $3}, y BUCKET b LAST 1h'],
  ["SELECT a.* BUCKET b METADATA {unit: 's'} LAST 1h", "SELECT a.* BUCKET b METADATA {part2: $2, unit: 's'} LAST 1h"],
  ['SELECT a.* BUCKET b METADATA {} LAST 1h', 'SELECT a.* BUCKET b METADATA {part2: $2} LAST 1h'],
  ['SELECT 2 * a.b BUCKET b LAST 1h', undefined],
  ['SELECT a.b BUCKET b * 2 LAST 1h', undefined],
  ['EXPLAIN', undefined],
  ['', undefined],
])('%s', (query, want) => expect(withParts(query)).toBe(want))

it('puts parts in the place of stars', () => {
  expect(withoutStars("max('web'.*.'a*b'.* BUCKET 'b')", { part2: 'eu', part4: 'x', unit: 's' })).toBe("max('web'.'eu'.'a*b'.'x' BUCKET 'b')")
  expect(withoutStars("'x' BUCKET 'b'", { part2: 'eu' })).toBe("'x' BUCKET 'b'")
  expect(withoutStars('a.*', undefined)).toBe('a.*')
})
