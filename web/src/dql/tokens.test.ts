import { describe, expect, it } from 'vitest'
import { quoted, tagText, tokenize } from './tokens'

const cut = (text: string) => tokenize(text).map((t) => `${t.kind}:${t.text}`)

describe('tokenize', () => {
  it('knows keywords from names', () => {
    expect(cut('select last.last BUCKET last(1.5, 5m)')).toEqual([
      'keyword:select', 'keyword:last', 'operator:.', 'name:last', 'keyword:BUCKET', 'function:last', 'operator:(', 'number:1.5', 'operator:,', 'number:5m', 'operator:)',
    ])
  })
  it('knows quotes, dates, variables and comments', () => {
    expect(cut(`'it\\'s'.* AS $2.$'x y' "2026-01-01" % LAST 'x`)).toEqual([
      "quoted:'it\\'s'", 'operator:.', 'operator:*', 'keyword:AS', 'variable:$2', 'operator:.', "variable:$'x y'", 'date:"2026-01-01"', "comment:% LAST 'x",
    ])
  })
  it('takes digits behind a dot for a part', () => expect(cut('a.5m.é')).toEqual(['name:a', 'operator:.', 'name:5m', 'operator:.', 'other:é']))

  it('covers every text without an end or an overlap', () => {
    let seed = 7
    const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n
    const alphabet = `aB1 .,'"\\%$()*-+\n_é💥LAST`
    for (let round = 0; round < 2000; round++) {
      const text = Array.from({ length: next(30) }, () => [...alphabet][next(24)]).join('')
      let at = 0
      for (const t of tokenize(text)) {
        expect(text.slice(at, t.from).trim()).toBe('')
        expect(t.to).toBeGreaterThan(t.from)
        expect(text.slice(t.from, t.to)).toBe(t.text)
        at = t.to
      }
      expect(text.slice(at).trim()).toBe('')
    }
  })
})

it('quotes what is no plain word', () => {
  expect(['web', 'a-b@c', 'last', 'a b', '1a', ''].map(quoted)).toEqual(['web', 'a-b@c', "'last'", "'a b'", "'1a'", "''"])
})

it('writes tags as a query does', () => {
  expect(['host', 'k8s:app', 'a b:c', 'n\\:s:pod', ':a:b', "o\\'d", 'like', 'x\\xff:y:z'].map(tagText)).toEqual(
    ['host', 'k8s:app', "'a b':c", "'n:s':pod", "'a:b'", "'o\\'d'", "'like'", "'x\\xff':'y:z'"])
})
