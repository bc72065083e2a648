// From the answer of the node to what is drawn, and the figures of the legend.

import type { Result, Series, Unknown } from '../api'
import { withoutStars } from '../dql/label'
import { readEventLists, type Event, type EventList } from '../events/json'
import { duration, moment } from '../format'

export type Values = (number | null | undefined)[]

export interface Line {
  index: number // in the answer: its colour, and its number in the URL
  name: string
  unit: string // from the metadata, or ''
  color: string
  resolution: number // ms per value, or per column of a reduced answer
  slot: number // ms of its bucket
  interval?: number // ms between the points of its sender, where that is known
  coverage: number // points ÷ points that the interval promises
  partial: boolean // points are missing, or older than what damage took
  ended: boolean // its sender sends no more
  lastPoint?: number // unix ms; undefined without a point
  unknown?: Unknown // the slots that damage took
  holes: [number, number][] // where they are on the axis, unix ms
  values: Values
  min?: Values
  max?: Values
  stats: Stats
}

export interface Stats {
  min: number | null
  max: number | null
  avg: number | null
  last: number | null
  points: number // values, or columns that hold some
}

export interface ChartData {
  x: number[] // unix seconds
  lines: Line[]
  reduced: boolean // values are averages of columns
  older: boolean // what is unknown has older values
  events: Marks[]
  start: number // unix ms
  end: number
}

/** Events that are marked in the chart. */
export interface Marks extends EventList {
  color: string
}

const palette = ['#3987e5', '#e8710a', '#12a375', '#d6409f', '#8b6cef', '#c99700', '#0fa3b1', '#e5484d', '#7a9a01', '#b26a3c', '#5b7c99', '#ad57c9']

/** The colour of the n-th series: a palette, then hues as far apart as they get. */
export function colorOf(n: number): string {
  return palette[n] ?? `hsl(${Math.round((n * 137.508) % 360)} 62% 52%)`
}

export function statsOf(values: Values, min: Values = values, max: Values = values): Stats {
  const s: Stats = { min: null, max: null, avg: null, last: null, points: 0 }
  let sum = 0
  for (let i = 0; i < values.length; i++) {
    const v = values[i]
    if (v === null || v === undefined) continue
    const low = min[i] ?? v
    const high = max[i] ?? v
    if (s.min === null || low < s.min) s.min = low
    if (s.max === null || high > s.max) s.max = high
    s.last = v
    sum += v
    s.points++
  }
  if (s.points) s.avg = sum / s.points
  return s
}

/**
 * Brings all series onto one axis of time. With different resolutions the axis
 * has the times of all; where a series has no value of its own there is
 * undefined, which a line passes over, while null is a gap.
 */
export function chartData(result: Result): ChartData {
  const series = result.results.filter((s) => s.type !== 'events')
  const begin = (s: Series) => s.start ?? result.start
  const [start, end] = [Math.min(...series.map(begin)), Math.max(...series.map((s) => endOf(s, begin(s))))]
  const one = series.every((s) => s.resolution === series[0]!.resolution && begin(s) === start && !s.times)
  const x = one ? timesOf(longest(series), start) : [...new Set(series.flatMap((s) => timesOf(s, begin(s))))].sort((a, b) => a - b)
  const place = one ? undefined : new Map(x.map((t, i) => [t, i]))
  const names = namesOf(series)
  const lines = series.map((s, index): Line => {
    const put = (values?: Values) => values && (place ? spread(values, timesOf(s, begin(s)), place, x.length) : padded(values, x.length))
    const slot = s.bucket_resolution ?? s.resolution
    return {
      index, name: names[index]!, unit: unitOf(s), color: colorOf(index), resolution: s.resolution, slot, interval: s.interval ?? undefined,
      coverage: s.coverage, partial: s.unknown !== undefined || s.coverage < 0.999, ended: s.ended ?? false, lastPoint: s.last_point,
      unknown: s.unknown, holes: (s.unknown?.ranges ?? []).map(([from, to]) => [from + begin(s) % slot, to + begin(s) % slot]),
      values: put(s.values)!, min: put(s.min), max: put(s.max), stats: statsOf(s.values, s.min, s.max),
    }
  })
  return {
    x: x.map((t) => t / 1000), lines, reduced: series.some((s) => s.min !== undefined), older: result.damaged === 'shown', events: [],
    start: series.length ? start : result.start, end: series.length ? end : result.start,
  }
}

/** The events of an answer, from its text: their digits are more than numbers have. */
export function marksOf(result: Result, text: string): Marks[] {
  if (!result.results?.some((s) => s.type === 'events')) return []
  const series = result.results.filter((s) => s.type !== 'events').length
  return readEventLists(text).map((e, i) => ({ ...e, color: colorOf(series + i) }))
}

/** The time of an event in unix ms, with fractions. */
export function msOf(e: Event): number {
  return Number(e.time / 1000n) / 1000
}

/** Whether damage took the slots behind a value of a line: some of them, all, or none. */
export function unknownAt(l: Line, data: ChartData, at: number): 'some' | 'all' | undefined {
  const from = Math.round(data.x[at]! * 1000)
  const lost = l.holes.reduce((n, [a, b]) => n + Math.max(0, Math.min(b, from + l.resolution) - Math.max(a, from)), 0)
  return lost === 0 ? undefined : lost < l.resolution ? 'some' : 'all'
}

/** What to say of a value beside it, or in its place where there is none. */
export function unknownText(l: Line, data: ChartData, at: number): string {
  const lost = unknownAt(l, data, at)
  if (!lost) return ''
  if (data.older) return 'older'
  return lost === 'all' || l.values[at] == null ? 'unknown' : 'partly unknown'
}

/** Names that tell series apart. */
function namesOf(series: Series[]): string[] {
  const times = new Map<string, number>()
  for (const s of series) times.set(s.name, (times.get(s.name) ?? 0) + 1)
  return series.map((s) => (times.get(s.name)! > 1 ? withoutStars(s.name, s.stars ?? []) : s.name))
}

/** Says how often a sender sends that is slower than its bucket, '' of others. */
export function slowness(l: Line): string {
  return l.interval && l.interval > l.slot ? `every ${duration(l.interval)} in a ${duration(l.slot)} bucket` : ''
}

/** Lines in their order, but those last that have ended. */
export function endedLast(lines: Line[]): Line[] {
  return lines.toSorted((a, b) => Number(a.ended) - Number(b.ended))
}

/** Says of a line that has ended when that was, '' of others. */
export function endText(l: Line, utc: boolean): string {
  if (!l.ended) return ''
  return l.lastPoint === undefined ? 'Ended: no point in this range' : `Ended: the last point was at ${moment(l.lastPoint, utc)}`
}

/** The times of the values of a series in unix ms. */
function timesOf(s: Series | undefined, start: number): number[] {
  return s ? s.values.map((_, i) => s.times?.[i] ?? start + i * s.resolution) : []
}

/** Where the last value of a series ends, in unix ms. */
function endOf(s: Series, start: number): number {
  return s.times?.length ? s.times.at(-1)! + s.resolution : start + s.values.length * s.resolution
}

function longest(series: Series[]): Series | undefined {
  return series.reduce<Series | undefined>((a, b) => (a && a.values.length >= b.values.length ? a : b), undefined)
}

function spread(values: Values, times: number[], place: Map<number, number>, length: number): Values {
  const out: Values = new Array<undefined>(length).fill(undefined)
  values.forEach((v, i) => (out[place.get(times[i]!)!] = v))
  return out
}

function padded(values: Values, length: number): Values {
  return values.length === length ? values : [...values, ...new Array<null>(length - values.length).fill(null)]
}

function unitOf(s: Series): string {
  const unit = s.metadata?.unit
  return typeof unit === 'string' ? unit : ''
}

/** The time of a place on the axis. Fractions of a second tell nothing where a value stands for seconds. */
export function timeAt(data: ChartData, at: number, utc: boolean): string {
  const grain = data.lines.some((l) => l.resolution < 1000) ? 1 : 1000
  return moment(Math.floor((data.x[at]! * 1000) / grain + 1e-6) * grain, utc)
}

/** Values, or columns that hold some, over all series. */
export function pointsOf(data: ChartData): number {
  return data.lines.reduce((n, l) => n + l.stats.points, 0)
}
