import { describe, expect, it } from 'vitest'
import { bucketAfter, wanted } from './complete'

describe('wanted', () => {
  it.each([
    ['', { kind: 'keyword', from: 0 }],
    ['SEL', { kind: 'keyword', from: 0 }],
    ['SELECT ', { kind: 'metric', from: 7, parts: [], functions: true }],
    ['SELECT we', { kind: 'metric', from: 7, parts: [], functions: true }],
    ['SELECT web.', { kind: 'metric', from: 11, parts: ['web'], functions: false }],
    ['SELECT web.*.req', { kind: 'metric', from: 13, parts: ['web', '*'], functions: false }],
    [`SELECT 'a b'.'c`, { kind: 'metric', from: 13, parts: ['a b'], functions: false }],
    ['SELECT max(', { kind: 'metric', from: 11, parts: [], functions: true }],
    ['SELECT a BUCKET b, ', { kind: 'metric', from: 19, parts: [], functions: true }],
    ['SELECT a BUCKET b + ', { kind: 'metric', from: 20, parts: [], functions: true }],
    ['SELECT a BUCKET ', { kind: 'bucket', from: 16 }],
    ['SELECT a BUCKET sh', { kind: 'bucket', from: 16 }],
    ['SELECT a.* BUCKET ', { kind: 'bucket', from: 18 }],
    ['SELECT a BUCKET b LAST ', { kind: 'span', from: 23 }],
    ['SELECT a BUCKET b LAST 1', { kind: 'nothing' }],
    ['SELECT a BUCKET b L', { kind: 'keyword', from: 18 }],
    ['SELECT a.* B', { kind: 'keyword', from: 11 }],
    ['SELECT a % BUCKET ', { kind: 'nothing' }],
    ['SELECT a BUCKET b AFTER "2026', { kind: 'nothing' }],
  ])('%s', (text, want) => expect(wanted(text)).toMatchObject(want))
})

it('finds the bucket behind the cursor', () => {
  expect(bucketAfter('.requests BUCKET shop LAST 1h')).toBe('shop')
  expect(bucketAfter(".* BUCKET 'a b')")).toBe('a b')
  expect(bucketAfter(') + x BUCKET y')).toBeUndefined()
  expect(bucketAfter(' LAST 1h')).toBeUndefined()
})
