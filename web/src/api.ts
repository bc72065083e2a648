// Requests to the node. Addresses are relative to the document, so that the
// page works below a sub-path; whether the node answers is kept by connection.

import { connection } from './connection'

export interface Series {
  type: string
  name: string
  resolution: number // ms
  start?: number // unix ms of its first column, when the answer is reduced to a width
  times?: number[] // of the values, unix ms, where they are spans of the calendar: then the resolution is about their length
  values: (number | null)[]
  min?: (number | null)[] // of columns, when the answer is reduced to a width
  max?: (number | null)[]
  points?: number // that were read for it
  last_point?: number // unix ms, absent without a point
  ended?: true // its sender sends no more
  coverage: number // points ÷ points that the interval of its sender promises
  bucket_resolution?: number // ms per slot of the bucket it was read from
  interval?: number | null // ms, the most common distance between its points
  stars?: string[] // the parts that the stars of its pattern stand for
  metadata?: Record<string, unknown>
  unknown?: Unknown // slots that damage took
}

/** The slots of a series that damage took. */
export interface Unknown {
  slots: number
  ranges: [number, number][] // [from, to) in unix ms, the first ones
  more?: number // further ranges
  why: string[]
}

/** A selector that found nothing. */
export interface Missing {
  selector: string
  message: string
}

/** Series of one side of an operator that have no partner on the other side. */
export interface Unmatched {
  selector: string
  offset: number // of that side in the query, in bytes
  series: string[] // the first ones
  more: number // further ones
}

export interface Step {
  id: number
  name: string
  resolution: number
  values: number
  uses: number
  time_us: number
  read?: { slots: number; asked: number; set: number; headers: number; rollups: number; decoded: number; bytes: number; unknown?: Unknown }
  inputs?: number[]
}

/** What the read of an EVENTS field went through. */
export interface EventRead {
  name: string
  files: number
  blocks: number
  bytes: number
  in_memory: number
  read: number
  found: number
  limit: number
  lost: number
  time_us: number
}

export interface Plan {
  fields: number[]
  steps: Step[]
  rounds: number
  slots: number
  memory: number
  events?: EventRead[]
}

export interface Result {
  start: number // unix ms
  query_time: number // µs
  results: Series[]
  damaged?: 'shown' // what is unknown has older values
  missing?: Missing[]
  unmatched?: Unmatched[]
  plan?: Plan
}

export interface Bucket {
  name: string // escaped
  resolution: number // ms
  ppf: number
  grace: number // ns
  hpts: boolean
  ttl: number | 'infinity' // points
}

export interface Fn {
  name: string
  desc: string
  help: string
  signature: string[]
  return: string
  group: string
  example: string
  since: string
  note?: string
}

export interface AccountRow {
  bucket: string
  minute?: number
  received: number
  accepted: number
  duplicate: number
  conflicting: number
  late: number
  unset: number
  refused: Record<string, number>
}

export interface Account {
  rows: AccountRow[]
  lost_total: Record<string, number>
  recovered_total: Record<string, number>
  refused_requests: Record<string, number>
}

export interface Segment {
  file: string
  bytes: number
  points: number
  series: number
  chunk_bytes: number
  from_ms: number
  to_ms: number
  damage?: string
}

export interface Status {
  version: string
  node: string
  ready: boolean
  uptime_s: number
  data_dir: string
  tcp_addr: string
  http_addr: string
  buckets: number
  series: number
  points_in_per_s: number
  points_out_per_s: number
  rss_bytes: number
  heap_bytes: number
  head_bytes: number
  memory_limit_bytes: number
  memory_used_bytes: number
  memory_level: string
  senders_held: number
  segments: number
  segment_bytes: number
  segment_points: number
  wal_sync: string
  wal_bytes: number
  wal_unsynced_bytes: number
  flushes: number
  since_flush_s: number
  free_disk_bytes: number
  disk_full: boolean
  damage: number
  ducks?: string // the address of the ducks whose rooms are shown
  scrapes?: string // the bucket of what the node scrapes
  cluster?: { ring: string; members: number; up: number } // of a node that is on its own: none
}

/** A target that the node scrapes, as Prometheus answers it. */
export interface Target {
  discoveredLabels: Record<string, string>
  labels: Record<string, string>
  scrapePool: string // the job
  scrapeUrl: string
  lastError: string
  lastScrape: string
  lastScrapeDuration: number // s
  health: 'up' | 'down' | 'unknown'
  scrapeInterval: string
  scrapeTimeout: string
}

/** The ring as the node sees it. */
export interface Cluster {
  node: string // that answers
  ring: string // version
  agree: boolean
  n: number
  next_n: number // after a change under way
  r: number
  w: number
  ring_size: number
  members: Member[]
  changing: boolean
  waits: string[] // what a change under way waits for
  paused: boolean
  staged: string[]
  waiting: string[] // nodes that are up and no members
  refused: string[] // why some of them cannot be
}

export interface Member {
  name: string
  id: string
  state: string
  up: boolean
  maintenance: boolean // it leaves reads and writes to others
  addresses: string[]
  zone: string
  share: number // of all copies
  future: number // after the change under way
  bytes: number
  free_disk_bytes: number
  hints: number // batches that it keeps for others
}

/** A partition that gets a new owner. */
export interface Move {
  partition: number
  from: string[] // who has it; nobody: it is lost
  to: string
}

export interface Transfer {
  hints: boolean // what a member keeps for one that was down; else a share that moves
  partition: number
  from: string
  to: string
  points: number
  bytes: number
  size: number // 0: not known
}

/** What a commit would do. */
export interface ClusterPlan {
  text: string
  ring: string
  staged: string // says which changes are meant
  changes: string[]
  moves: number
  bytes: number
  warnings: string[]
}

/** How well copies agree, as this node has seen it since it started. */
export interface Audit {
  comparisons: number
  chunks: number
  differences: number
  repaired: number
  moved: number
  hints_kept: number
  hints_delivered: number
  hints: number
  partitions: { partition: number; ago_s: number; never: boolean }[]
}

/** Changes that are staged, and those made at once. */
export type Staging = 'join' | 'leave' | 'replace' | 'force-remove' | 'set-n'
export type Order = 'clear' | 'undo' | 'pause' | 'resume'

export interface LogLine {
  n: number
  time_ms: number
  level: string
  message: string
  fields?: string
}

export interface Cache {
  name: string
  holds: string
  bytes: number
  limit: number
  unit?: string // of both, where that is not bytes
}

export interface Stat {
  name: string // with the labels behind it
  value: number
}

/** What series are counted by. */
export type By = 'names' | 'values' | 'buckets' | 'prefixes'

export interface Top {
  by: By
  list: { text: string; name?: string; bucket?: string; values?: number; deeper?: boolean; series: number; new: number }[]
  more: boolean
  distinct: number
  series: number
  new: number
  new_since: number // unix ms
  new_hours: number
  new_at_least?: boolean
}

/** Names or values of tags, or collections, in the order of their bytes. */
export interface TagList {
  list: { text: string; series: number; new: number }[]
  more: boolean
  series: number // that were looked at
}

/** The figures of a family by the value of their one label. */
export function byLabel(stats: Iterable<Stat>, family: string): [string, number][] {
  const label = /^\{\w+="(.*)"\}$/s
  return [...stats].flatMap(({ name, value }): [string, number][] => {
    const found = name.startsWith(family) ? label.exec(name.slice(family.length)) : null
    return found ? [[found[1]!, value]] : []
  })
}

/** An answer of the node that says what is wrong. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly position?: { line: number; column: number; offset: number; near: string },
  ) {
    super(message)
  }
}

/** No answer: the node is gone, or something between here and there. */
export class Unreachable extends Error {}

export interface Reply<T> {
  value: T
  text: string
  took: number // ms, until the last byte
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, headers: { Accept: 'application/json', ...init.headers } })
  } catch (error) {
    if (init.signal?.aborted) throw error
    connection.lost()
    throw new Unreachable('no answer from the node')
  }
}

const isJSON = (r: Response) => (r.headers.get('Content-Type') ?? '').startsWith('application/json')

/** What an answer says that is no success. */
function problemOf(response: Response, text: string): Problem {
  const said = isJSON(response) ? JSON.parse(text) : { message: text.trim() || `${response.status} ${response.statusText}` }
  return new Problem(said.message ?? said.error, response.status, said.position)
}

async function requestText(path: string, init: RequestInit = {}): Promise<Reply<undefined>> {
  const began = performance.now()
  const response = await ask(path, init)
  const text = await response.text().catch((error: unknown) => {
    if (init.signal?.aborted) throw error
    // An answer that fails once it has begun is cut by the node: it answers, but not this.
    throw new Problem(`the answer to ${path} broke off: the log of the node says why`, response.status)
  })
  const took = performance.now() - began
  if (!response.ok) throw problemOf(response, text)
  if (!isJSON(response)) throw new Problem(`the answer to ${path} is not JSON: is there a proxy in between that answers itself?`, response.status)
  connection.answered()
  return { value: undefined, text, took }
}

/** Asks for JSON; an answer that is no success is a Problem. */
export async function request<T>(path: string, init: RequestInit = {}): Promise<Reply<T>> {
  const reply = await requestText(path, init)
  return { ...reply, value: JSON.parse(reply.text) as T }
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request<T>(path, { signal })).value
}

async function change<T>(path: string, body: unknown): Promise<T> {
  const headers = { 'Content-Type': 'application/json', 'X-Dalmatiner': '1' }
  return (await request<T>(path, { method: 'POST', headers, body: JSON.stringify(body) })).value
}

/** A query under way. */
export interface Running {
  took_ms: number
  share: number // of its range that has been read
}

export interface QueryOptions {
  id?: string // under which the node says how far it is
  width?: number // columns; without it every value is sent
  explain?: boolean
  older?: boolean // show older values where damage took newer ones
  compat?: boolean // what does not exist has no points, instead of being an error; gaps stay gaps
  signal?: AbortSignal
}

/** Runs a query. It goes into the body, since it may be longer than a URL. */
export function runQuery(text: string, o: QueryOptions = {}): Promise<Reply<Result>> {
  const form = new URLSearchParams({ q: text, align: '1', format: 'json' })
  if (o.id) form.set('id', o.id)
  if (o.width) form.set('width', String(o.width))
  if (o.compat) {
    form.set('compat', '1')
    form.set('gaps', 'null') // the original fills them
  }
  if (o.older) form.set('damaged', 'show')
  if (o.explain) form.set('explain', '1')
  return request<Result>('./', { method: 'POST', body: form, signal: o.signal })
}

/** Asks for events of a bucket, the earliest first. Its text has digits that numbers of a browser have not. */
export function askEvents(bucket: string, filter: string, from: number, to: number, limit: number, signal: AbortSignal): Promise<Reply<undefined>> {
  const asked = new URLSearchParams({ bucket, filter, start: String(from), end: String(to), limit: String(limit) })
  return requestText(`./events?${asked}`, { signal })
}

/** Gives the text of a live tail as it comes, until the node ends it. */
export async function followEvents(bucket: string, filter: string, signal: AbortSignal, take: (text: string) => void): Promise<void> {
  const response = await ask(`./events?${new URLSearchParams({ bucket, filter, follow: '1' })}`, { signal, headers: { Accept: 'text/event-stream' } })
  if (!response.ok) throw problemOf(response, await response.text())
  connection.answered()
  const reader = response.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    take(value)
  }
}

const element = encodeURIComponent

/** What metrics begin with. */
export interface Beginning {
  key: string // says what is asked for below it
  parts: string[] // escaped
}

/** The parts of a printed metric, escaped. */
function partsOf(name: string): string[] {
  return [...name.matchAll(/'((?:[^'\\]|\\[^])*)'/g)].map((m) => m[1]!)
}

/** Asks for what the parameters say; those without a value are left out, but for the empty namespace. */
function getWith<T>(path: string, params: Record<string, string | number | undefined>, signal?: AbortSignal): Promise<T> {
  const given = Object.entries(params).filter(([name, value]) => value !== undefined && (value !== '' || name === 'namespace'))
  return get<T>(`${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`, signal)
}

export const api = {
  buckets: (signal?: AbortSignal) => get<Bucket[]>('./buckets', signal),
  functions: () => get<Fn[]>('./functions'),
  status: (signal?: AbortSignal) => get<Status>('./admin/status', signal),
  stats: (signal?: AbortSignal) => get<Stat[]>('./admin/stats', signal),
  caches: (signal?: AbortSignal) => get<Cache[]>('./admin/caches', signal),
  log: (signal?: AbortSignal) => get<LogLine[]>('./admin/log', signal),
  account: (signal?: AbortSignal) => get<Account>('./admin/account', signal),
  minutes: (n: number, signal?: AbortSignal) => get<Account>(`./admin/account?minutes=${n}`, signal),
  running: (id: string, signal?: AbortSignal) => get<Running[]>(`./admin/queries?id=${element(id)}`, signal),
  segments: (bucket: string, signal?: AbortSignal) => get<Segment[]>(`./admin/segments${bucket && `?bucket=${element(bucket)}`}`, signal),
  metrics: (bucket: string, contains: string, limit: number, signal?: AbortSignal) =>
    get<string[]>(`./buckets/${element(bucket)}?limit=${limit}&contains=${element(contains)}`, signal),
  /** What the metrics of a bucket, as they are stored, begin with: a beginning and up to depth parts more. */
  below: async (bucket: string, key: string, depth: number, signal?: AbortSignal): Promise<Beginning[]> =>
    (await get<string[]>(`./buckets/${element(bucket)}?depth=${depth}&prefix=${element(key)}`, signal)).map((name) => ({ key: name, parts: partsOf(name) })),
  /** The same of the names by which a lookup in a collection finds series. */
  belowName: (collection: string, key: string, depth: number, signal?: AbortSignal): Promise<Beginning[]> =>
    get(`./collections/${element(collection)}/metrics${key && `/${element(key)}`}?depth=${depth}`, signal),
  top: (params: { by: By; sort?: string; limit?: number; bucket?: string; prefix?: string; name?: string }, signal?: AbortSignal) =>
    getWith<Top>('./tags/top', params, signal),
  /** The collections of series that have tags. */
  tagCollections: (params: { prefix?: string; limit: number }, signal?: AbortSignal) => getWith<TagList>('./tags/collections', params, signal),
  tagNames: (collection: string, params: { where?: string; namespace?: string; prefix?: string; limit: number }, signal?: AbortSignal) =>
    getWith<TagList>('./tags/names', { collection, ...params }, signal),
  tagValues: (collection: string, name: string, params: { where?: string; prefix?: string; limit: number }, signal?: AbortSignal) =>
    getWith<TagList>('./tags/values', { collection, name, ...params }, signal),
  targets: async (signal?: AbortSignal) => (await get<{ data: { activeTargets: Target[] } }>('./api/v1/targets?state=active', signal)).data.activeTargets,
  cluster: (signal?: AbortSignal) => get<Cluster>('./admin/cluster/status', signal),
  moves: async (signal?: AbortSignal) => (await get<{ moves: Move[] }>('./admin/cluster/ring', signal)).moves,
  transfers: async (signal?: AbortSignal) => (await get<{ transfers: Transfer[] }>('./admin/cluster/transfers', signal)).transfers,
  plan: (signal?: AbortSignal) => get<ClusterPlan>('./admin/cluster/plan', signal),
  audit: (signal?: AbortSignal) => get<Audit>('./admin/cluster/audit', signal),
  stage: (what: Staging, body: { node?: string; new?: string; n?: number }) => change<ClusterPlan>(`./admin/cluster/${what}`, body),
  commit: ({ ring, staged }: ClusterPlan) => change<Cluster>('./admin/cluster/commit', { ring, staged }),
  order: (what: Order) => change<Cluster>(`./admin/cluster/${what}`, {}),
  createBucket: (b: Bucket) => change<Bucket>('./admin/buckets/create', b),
  deleteBucket: (name: string) => change<unknown>('./admin/buckets/delete', { name }),
  setTTL: (name: string, ttl: Bucket['ttl']) => change<unknown>('./admin/buckets/ttl', { name, ttl }),
}
