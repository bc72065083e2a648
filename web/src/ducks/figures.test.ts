import { expect, it } from 'vitest'
import type { Device, Group, Planned, Volume } from './client'
import { byGroup, deviceOf, given, look, marks, nextText, parts, trafficQuery, tree } from './figures'

const device = (name: string, more: Partial<Device> = {}): Device =>
  ({ name, mac: '', group: 'lab', network: 'default', mode: 'volatile', iqn: '', portal: '', initiator: '', on: true, read_bytes: 0, write_bytes: 0, seen_at: '', ...more })
const version = (number: number) => ({ number, from: '', author: '', note: '', at: '', changed_bytes: 0 })
const group = (name: string, volume: string, more: Partial<Group> = {}): Group => ({ name, network: 'default', volume, use: 0, versions: [version(1), version(2)], ...more })

it('has rates of sessions that went on', () => {
  const at = (second: number, ...list: Device[]) => list.map((d) => ({ ...d, seen_at: `2026-11-28T10:00:0${second}.5Z` }))
  const first = look(at(1, device('a', { read_bytes: 100 }), device('b'), device('c', { on: false }), device('d', { write_bytes: 9 })))
  expect(first.rates.size).toBe(0)
  const second = look(at(3, device('a', { read_bytes: 300, write_bytes: 50 }), device('b', { on: false }), device('c'), device('d', { write_bytes: 1 }), device('e')), first)
  expect([...second.rates]).toEqual([['a', { read: 100, written: 25 }]])
  expect(look(second.devices, second).rates.get('a')).toEqual({ read: 100, written: 25 }) // ducks has not looked again
  expect(look(at(1, device('a')), first).rates.size).toBe(0)
})

it('says which version devices get', () => {
  expect([given(group('g', 'v')), given(group('g', 'v', { use: 1 })), given(group('g', 'v', { versions: [] }))]).toEqual([2, 1, 0])
  const tried = group('g', 'v', { use: 1, canary: { version: 2, share: 10, until: 'up', begun: {} } })
  expect([marks(tried, 1), marks(tried, 2)]).toEqual([['in use'], ['tried by 10 %, until up']])
  expect(marks(group('g', 'v', { use: 1, withdrawn: { version: 2, why: '', at: '' } }), 2)).toEqual(['taken back'])
})

it('shows groups of volumes that may not be looked at', () => {
  const volumes: Volume[] = [{ name: 'z', network: 'default', size: 1, versions: [] }]
  expect(tree(volumes, [group('g', 'z'), group('h', 'a')]).map((t) => [t.name, t.volume?.size, t.groups.map((g) => g.name)])).toEqual([['a', undefined, ['h']], ['z', 1, ['g']]])
  expect(tree(undefined, [group('g', 'z')]).length).toBe(1)
})

it('sorts devices', () => {
  expect(byGroup([device('b'), device('a'), device('c', { group: 'annex' })]).map(([g, list]) => [g, list.map((d) => d.name)])).toEqual([['annex', ['c']], ['lab', ['a', 'b']]])
})

it('says what comes next', () => {
  const plan: Planned = { device: 'a', group: 'g', version: 3, fresh: true, why: '', loses_bytes: 0 }
  expect([nextText(undefined), nextText(plan), nextText({ ...plan, fresh: false })]).toEqual(['–', 'version 3, anew', 'goes on'])
})

it('cuts a boot into stages', () => {
  expect(parts({ begun: '', stages: [{ stage: 'dhcp', seconds: 0 }, { stage: 'script', seconds: 2 }, { stage: 'login', seconds: 2.5 }] }))
    .toEqual([{ stage: 'dhcp', from: 0, to: 0 }, { stage: 'script', from: 0, to: 2 }, { stage: 'login', from: 2, to: 2.5 }])
})

it('names what it asks the store for', () => {
  expect([deviceOf('device pc 1'), deviceOf('pool')]).toEqual(['pc 1', undefined])
  expect(trafficQuery("o'd")).toContain("devices.'o\\'d'.read_bytes BUCKET ducks AS read")
})
