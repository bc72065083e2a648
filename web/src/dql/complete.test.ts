import { describe, expect, it } from 'vitest'
import { sourceAfter, wanted } from './complete'

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
    ['SELECT ALL FROM ', { kind: 'collection', from: 16, typed: '' }],
    ['SELECT cpu IN fl', { kind: 'collection', from: 14, typed: 'fl' }],
    ["SELECT a.b FROM 'a b", { kind: 'collection', typed: 'a b' }],
    ['SELECT EVENTS FROM ', { kind: 'bucket', from: 19 }],
    ['SELECT ALL FROM fleet WHERE ', { kind: 'tag', from: 28, collection: 'fleet', typed: '', variable: false }],
    ["SELECT sum(ALL FROM 'o\\'d' WHERE NOT (ho", { kind: 'tag', collection: "o\\'d", typed: 'ho' }],
    ['SELECT ALL FROM fleet WHERE k8s:a', { kind: 'tag', from: 28, typed: 'k8s:a' }],
    ["SELECT ALL FROM fleet WHERE 'n:s':", { kind: 'tag', from: 28, typed: 'n\\:s:' }],
    ['SELECT ALL FROM fleet WHERE host = ', { kind: 'value', from: 35, collection: 'fleet', tag: 'host', typed: '' }],
    ['SELECT ALL FROM fleet WHERE a = b AND k8s:app != sh', { kind: 'value', tag: 'k8s:app', typed: 'sh' }],
    ["SELECT ALL FROM fleet WHERE 'a:b' NOT ", { kind: 'value', tag: ':a:b' }],
    ["SELECT ALL FROM fleet WHERE host NOT LIKE 'we", { kind: 'value', tag: 'host', typed: 'we' }],
    ['SELECT ALL FROM fleet WHERE host =~ ', { kind: 'nothing' }],
    ['SELECT ALL FROM fleet WHERE host ', { kind: 'condition', from: 33 }],
    ['SELECT ALL FROM fleet WHERE host = web1 ', { kind: 'keyword' }],
    ['SELECT ALL FROM fleet WHERE host = web1 OR ', { kind: 'tag', typed: '' }],
    ['SELECT ALL FROM fleet WHERE host = a, ', { kind: 'metric' }],
    ['SELECT ALL FROM fleet GROUP BY ', { kind: 'tag', variable: true, typed: '' }],
    ['SELECT ALL FROM fleet GROUP BY $a, $k8s:a', { kind: 'tag', from: 35, variable: true, typed: 'k8s:a' }],
    ['SELECT ALL FROM fleet GROUP BY $a USING ', { kind: 'combiner', from: 40 }],
    ['SELECT avg(ALL FROM fleet, 1m) METADATA {x: $ho', { kind: 'tag', collection: 'fleet', variable: true, typed: 'ho' }],
    ['SELECT ALL FROM fleet METADATA {x: ', { kind: 'tag', variable: true, typed: '' }],
    ['SELECT ALL FROM fleet AS $', { kind: 'tag', collection: 'fleet', variable: true }],
    ['SELECT a BUCKET b AS $', { kind: 'nothing' }],
    ['SELECT ALL FROM fleet LAST ', { kind: 'span' }],
    ['SELECT in.x BUCKET b ', { kind: 'keyword' }],
  ])('%s', (text, want) => expect(wanted(text)).toMatchObject(want))
})

it('finds the bucket or the collection behind the cursor', () => {
  expect(sourceAfter('.requests BUCKET shop LAST 1h')).toEqual({ name: 'shop', lookup: false })
  expect(sourceAfter(".* BUCKET 'a b')")).toEqual({ name: 'a b', lookup: false })
  expect(sourceAfter(".* FROM 'a b' WHERE x = y")).toEqual({ name: 'a b', lookup: true })
  expect(sourceAfter(') + x BUCKET y')).toBeUndefined()
  expect(sourceAfter(' LAST 1h')).toBeUndefined()
})
