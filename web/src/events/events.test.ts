import { expect, it } from 'vitest'
import { momentInFull, momentOfNs } from '../format'
import { pretty, readEventLists, readEvents, type Piece } from './json'
import { Messages } from './stream'
import { emptyTail, grown } from './tail'

const text = (pieces: Piece[]) => pieces.map((p) => p.text).join('')

it('reads events with every digit', () => {
  const answer = '{"e":[{"timestamp":1792765432123456789,"event":{"n":9007199254740993,"s":"]},{\\"e\\":\\\\"}},\n {"timestamp":1,"event":{}}],"more":true,"damaged":[{"start":5,"end":9,"events":3}],"t":17}\n'
  expect(readEvents(answer)).toEqual({
    list: [{ time: 1792765432123456789n, body: '{"n":9007199254740993,"s":"]},{\\"e\\":\\\\"}' }, { time: 1n, body: '{}' }],
    more: true, damaged: [{ start: 5, end: 9, events: 3 }], micros: 17,
  })
  expect(readEvents('{"e":[],"t":0}')).toEqual({ list: [], more: false, damaged: [], micros: 0 })
})

it('reads the events of a query', () => {
  const answer = '{"start":1,"query_time":2,"results":[{"type":"metrics","name":"a","values":[1,null]},{"type":"events","name":"x\\"y","metadata":{},"damaged":[{"start":5,"end":9,"events":3}],"values":[{"timestamp":1792765432123456789,"event":{"n":9007199254740993}}]}]}'
  expect(readEventLists(answer)).toEqual([
    { name: 'x"y', list: [{ time: 1792765432123456789n, body: '{"n":9007199254740993}' }], damaged: [{ start: 5, end: 9, events: 3 }] },
  ])
  expect(readEventLists('{"start":1,"results":[]}')).toEqual([])
})

it('writes JSON over lines where it is long', () => {
  expect(text(pretty('{"a":1,"b":[true,null],"c":{}}'))).toBe('{"a": 1, "b": [true, null], "c": {}}')
  expect(text(pretty('{"a":12345678901,"b":[1,2,3],"c":{},"d":[],"e":{"f":"gggggggggg"}}', 20))).toBe(
    '{\n  "a": 12345678901,\n  "b": [1, 2, 3],\n  "c": {},\n  "d": [],\n  "e": {\n    "f": "gggggggggg"\n  }\n}')
  expect(pretty('{"k:":"a\\"}", "n":-1e400,"w":false}').filter((p) => p.kind).map((p) => `${p.kind} ${p.text}`)).toEqual(
    ['key "k:"', 'string "a\\"}"', 'key "n"', 'number -1e400', 'key "w"', 'word false'])
})

it('keeps what JSON says', () => {
  for (const json of ['{"a":[[],[[1,2],{"b":{"c":[{}]}}],"x y  z"],"é\\u0000":"\\\\"}', '[]', '"x"', '-1.5']) {
    for (const width of [0, 8, 100]) expect(JSON.parse(text(pretty(json, width)))).toEqual(JSON.parse(json))
  }
})

it('takes a stream apart wherever it is cut', () => {
  const stream = ': hello\n\ndata: {"timestamp":1,"event":{"a":"b"}}\n\nevent: missed\ndata: {"events":7}\n\n: nothing new\n\ndata: {"timestamp":2,"event":{}}\n\ndata: {"times'
  for (let cut = 0; cut <= stream.length; cut++) {
    const m = new Messages()
    const all = [...m.push(stream.slice(0, cut)), ...m.push(stream.slice(cut))]
    expect(all.map((x) => x.event)).toEqual(['', 'missed', ''])
    const tail = grown(emptyTail, all, 1)
    expect(tail).toMatchObject({ list: [{ time: 2n, body: '{}' }], seen: 2, missed: 7 })
    expect(grown(tail, [], 1)).toEqual(tail)
  }
})

it('writes times to the ms, and in full', () => {
  expect(momentOfNs(1792765432123999999n, true)).toBe('2026-10-23 14:23:52.123')
  expect(momentOfNs(1792765432000000001n, true)).toBe('2026-10-23 14:23:52.000')
  expect(momentInFull(1792765432003000009n)).toBe('2026-10-23 14:23:52.003000009 UTC\n1792765432003000009 ns')
})
