import { expect, it } from 'vitest'
import type { Audit, Transfer } from '../api'
import { auditFacts, body, byPair, progress } from './figures'

it('groups moves by the members they are between', () => {
  const moves = [{ partition: 1, from: ['a', 'b'], to: 'c' }, { partition: 2, from: [], to: 'c' }, { partition: 3, from: ['a'], to: 'c' }, { partition: 4, from: ['a'], to: 'd' }]
  expect(byPair(moves)).toEqual([
    { from: 'a', to: 'c', partitions: [1, 3] }, { from: '', to: 'c', partitions: [2] }, { from: 'a', to: 'd', partitions: [4] },
  ])
})

it('knows how far a transfer is, if its size is known', () => {
  const at = (bytes: number, size: number) => progress({ hints: false, partition: 0, from: 'a', to: 'b', points: 0, bytes, size } satisfies Transfer)
  expect([at(5, 0), at(0, 10), at(5, 10), at(11, 10)]).toEqual([undefined, 0, 0.5, 1])
})

it('sums an audit up', () => {
  const audit: Audit = { comparisons: 1, chunks: 2000, differences: 3, repaired: 4, moved: 5, hints_kept: 6, hints_delivered: 7, hints: 8, partitions: [] }
  const facts = (partitions: Audit['partitions']) => auditFacts({ ...audit, partitions }).map(([, value]) => value)
  expect(facts([])).toEqual(['0', '0', '–', '1', '2\u202f000', '3', '4', '5', '6', '7', '8'])
  const passes = [{ partition: 0, ago_s: 61.5, never: false }, { partition: 1, ago_s: 2, never: false }, { partition: 2, ago_s: 0, never: true }]
  expect(facts(passes).slice(0, 3)).toEqual(['3', '1', '1 min 1 s'])
})

it('stages what is complete', () => {
  expect([body('set-n', '', '', '3'), body('set-n', '', '', '16'), body('set-n', '', '', ''), body('set-n', '', '', '0')]).toEqual([{ n: 3 }, undefined, undefined, undefined])
  expect([body('join', 'a', '', ''), body('leave', '', '', '')]).toEqual([{ node: 'a' }, undefined])
  expect([body('replace', 'a', '', ''), body('replace', 'a', 'b', '')]).toEqual([undefined, { node: 'a', new: 'b' }])
})
