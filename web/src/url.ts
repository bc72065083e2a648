// What the page shows stands in the query of its URL, so that every view has a
// link and the browser's back button works.

import { useEffect, useState } from 'preact/hooks'
import type { By } from './api'
import { quoted } from './dql/tokens'

export type Name = 'query' | 'events' | 'buckets' | 'cardinality' | 'functions' | 'node' | 'targets' | 'ring' | 'ducks'
export type View = 'chart' | 'table' | 'plan'

export interface State {
  page: Name
  query: string // DQL; '' shows an empty editor
  view: View
  live: boolean
  every: boolean // every value rather than one column per pixel
  older: boolean // older values where damage took newer ones
  utc: boolean
  hide: number[] // series that are not drawn
  bucket: string // of the pages of buckets and events, escaped
  search: string
  filter: string // of events
  range: string // of events, as the clause of a query
  limit: number // of events
  by: By // of the page of cardinality, with those below
  sort: Sort
  prefix: string // whole parts, as a query writes them
  name: string // of a tag, escaped
  show: 'room' | 'images' // of ducks
  device: string // of ducks, instead
}

export type Sort = 'series' | 'new'

export const initial: State = {
  page: 'query', query: '', view: 'chart', live: false, every: false, older: false, utc: false, hide: [], bucket: '', search: '',
  filter: '', range: 'LAST 1h', limit: 200, by: 'prefixes', sort: 'series', prefix: '', name: '', show: 'room', device: '',
}

/** How many events the page shows at most. */
export const mostEvents = 10_000

const pages: Name[] = ['query', 'events', 'buckets', 'cardinality', 'functions', 'node', 'targets', 'ring', 'ducks']
const ways: By[] = ['prefixes', 'buckets', 'names', 'values']
const withBucket: Name[] = ['buckets', 'events', 'cardinality']
const views: View[] = ['chart', 'table', 'plan']

/** Reads the state from the query of a URL. */
export function parse(search: string): State {
  const p = new URLSearchParams(search)
  const one = <T extends string>(value: string | null, of: T[]) => of.find((v) => v === value)
  const page = one(p.get('page'), pages) ?? 'query'
  // Links of the original's page: ?bucket=&metric= stands for a query.
  const [bucket, metric] = [p.get('bucket') ?? '', p.get('metric')]
  const old = page === 'query' && bucket && metric ? `SELECT ${metric} BUCKET ${quoted(bucket)} LAST 60s` : ''
  return {
    page,
    query: p.get('query') ?? old,
    view: one(p.get('view'), views) ?? 'chart',
    live: p.get('live') === '1',
    every: p.get('points') === 'all',
    older: p.get('damaged') === 'show',
    utc: p.get('time') === 'utc',
    hide: (p.get('hide') ?? '').split(',').filter((n) => /^\d+$/.test(n)).map(Number),
    bucket: withBucket.includes(page) ? bucket : '',
    search: p.get('search') ?? '',
    filter: p.get('filter') ?? initial.filter,
    range: p.get('range') ?? initial.range,
    limit: limitOf(p.get('limit') ?? ''),
    by: one(p.get('by'), ways) ?? initial.by,
    sort: p.get('sort') === 'new' ? 'new' : 'series',
    prefix: p.get('prefix') ?? '',
    name: p.get('name') ?? '',
    show: p.get('show') === 'images' ? 'images' : 'room',
    device: p.get('device') ?? '',
  }
}

/** The number of events to show that a text gives. */
export function limitOf(text: string): number {
  const n = /^\d+$/.test(text) ? Number(text) : 0
  return n >= 1 && n <= mostEvents ? n : initial.limit
}

/** The query of the URL of a state; what is as ever is left out. */
export function format(s: State): string {
  const p = new URLSearchParams()
  if (s.page !== 'query') p.set('page', s.page)
  if (s.page === 'query') {
    if (s.query) p.set('query', s.query)
    if (s.view !== 'chart') p.set('view', s.view)
    if (s.live) p.set('live', '1')
    if (s.every) p.set('points', 'all')
    if (s.older) p.set('damaged', 'show')
    if (s.hide.length) p.set('hide', s.hide.join(','))
  }
  if (s.utc) p.set('time', 'utc')
  if (withBucket.includes(s.page) && s.bucket) p.set('bucket', s.bucket)
  if (s.page === 'events') {
    if (s.filter) p.set('filter', s.filter)
    if (s.range !== initial.range) p.set('range', s.range)
    if (s.limit !== initial.limit) p.set('limit', String(s.limit))
    if (s.live) p.set('live', '1')
  }
  if (s.page === 'cardinality') {
    if (s.by !== initial.by) p.set('by', s.by)
    if (s.sort !== initial.sort) p.set('sort', s.sort)
    if (s.prefix) p.set('prefix', s.prefix)
    if (s.name) p.set('name', s.name)
  }
  if (s.page === 'ducks') {
    if (s.show !== initial.show) p.set('show', s.show)
    if (s.device) p.set('device', s.device)
  }
  if (s.search && s.page !== 'query') p.set('search', s.search)
  const text = p.toString()
  return text ? `?${text}` : './'
}

export type Go = (change: Partial<State>, replace?: boolean) => void

/** The state, and a function that changes it: as a step of history or in place. */
export function useURL(): [State, Go] {
  const [state, set] = useState(() => parse(location.search))
  useEffect(() => {
    const back = () => set(parse(location.search))
    window.addEventListener('popstate', back)
    return () => window.removeEventListener('popstate', back)
  }, [])
  const go: Go = (change, replace = false) => {
    const next = { ...parse(location.search), ...change }
    const url = format(next)
    if (replace) history.replaceState(null, '', url)
    else if (url !== (location.search || './')) history.pushState(null, '', url)
    set(next)
  }
  return [state, go]
}

/** The link to a state of another page; the way times are shown goes along. */
export function link(change: Partial<State>): string {
  return format({ ...initial, utc: parse(location.search).utc, ...change })
}
