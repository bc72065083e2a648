import { expect, it } from 'vitest'
import { format, initial, parse, type State } from './url'

it('reads back every state that it writes', () => {
  const states: Partial<State>[] = [
    {}, { query: "SELECT 'é&=%+' BUCKET b\nLAST 1h" }, { query: 'x', view: 'table', live: true, every: true, older: true, utc: true, hide: [0, 12] },
    { page: 'buckets', bucket: "odd \\xff name", search: 'a b' }, { page: 'node', utc: true }, { page: 'functions', search: 'avg' }, { page: 'targets', search: 'down' }, { page: 'ring' }, { page: 'ducks' }, { page: 'ducks', show: 'images' }, { page: 'ducks', device: 'a b' },
    { page: 'events', bucket: 'logs', filter: "a == 'b&c' AND NOT d > 1", range: 'LAST 5m', limit: 1000, live: true, utc: true }, { page: 'events' },
    { page: 'cardinality' }, { page: 'cardinality', bucket: 'a b', by: 'prefixes', sort: 'new', prefix: "'web'.'o\\'d'" }, { page: 'cardinality', by: 'values', name: 'ns:host' },
  ]
  for (const change of states) {
    const state = { ...initial, ...change }
    const url = format(state)
    expect(parse(url === './' ? '' : url)).toEqual(state)
  }
})

it('opens the links of the original', () => {
  expect(parse('?query=SELECT+x').query).toBe('SELECT x')
  expect(parse("?bucket=shop&metric='web'.'eu'").query).toBe("SELECT 'web'.'eu' BUCKET shop LAST 60s")
})

it('takes what it does not know for what is as ever', () => {
  expect(parse('?page=admin&view=3d&hide=a,1,-2,3x&live=2')).toEqual({ ...initial, hide: [1] })
  for (const limit of ['0', '-1', '10001', 'x', '1e3', '']) expect(parse(`?page=events&limit=${limit}`).limit, limit).toBe(initial.limit)
})
