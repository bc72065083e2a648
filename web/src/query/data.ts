// From the answer of the node to what is drawn, and the figures of the legend.

import type { Result, Series, Unknown } from '../api'
import { withoutStars } from '../dql/label'
import { count, duration, moment } from '../format'

export type Values = (number | null | undefined)[]

export interface Line {
  index: number // in the answer: its colour, and its number in the URL
  name: string
  unit: string // from the metadata, or ''
  color: string
  resolution: number // ms per value, or per column of a reduced answer
  slot: number // ms of its bucket
  rhythm?: number // ms between its points, of a sender that is slower than the bucket
  coverage: number // share of the slots that could hold a point, by its rhythm
  partial: boolean // points are missing
  unknown?: string // how many slots damage took, and what it hit
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
  points: number
}

export interface ChartData {
  x: number[] // unix seconds
  lines: Line[]
  reduced: boolean // values are averages of columns
  start: number // unix ms
  end: number
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
  const series = result.results
  const steps = [...new Set(series.map((s) => s.resolution))]
  const end = result.start + Math.max(0, ...series.map((s) => s.values.length * s.resolution))
  const x = axis(result.start, series, steps)
  const place = steps.length > 1 ? new Map(x.map((t, i) => [Math.round(t * 1000), i])) : undefined
  const names = namesOf(series)
  const lines = series.map((s, index): Line => {
    const slower = rhythmOf(s)
    const put = (all?: Values) => {
      const values = joined(all, s.resolution, slower)
      return values && (place ? spread(values, s, result.start, place, x.length) : padded(values, x.length))
    }
    const slot = s.bucket_resolution ?? s.resolution
    const coverage = slower ? Math.min(1, s.coverage * slower / slot) : s.coverage
    // A range that begins between two points of a slow sender may have one less.
    const missing = slower ? (1 - coverage) * s.values.length * s.resolution / slower : 0
    return {
      index, name: names[index]!, unit: unitOf(s), color: colorOf(index), resolution: s.resolution, slot, rhythm: slower,
      coverage, partial: slower ? missing > 1.01 : coverage < 0.999,
      unknown: s.unknown && unknownText(s.unknown),
      values: put(s.values)!, min: put(s.min), max: put(s.max), stats: statsOf(s.values, s.min, s.max),
    }
  })
  return { x, lines, reduced: series.some((s) => s.min !== undefined), start: result.start, end }
}

/** Says how many slots of a series damage took, and what it hit. */
export function unknownText(u: Unknown): string {
  return `${count(u.slots)} ${u.slots === 1 ? 'slot is' : 'slots are'} unknown, neither set nor unset: ${u.why.join('; ')}`
}

/** Names that tell series apart. */
function namesOf(series: Series[]): string[] {
  const times = new Map<string, number>()
  for (const s of series) times.set(s.name, (times.get(s.name) ?? 0) + 1)
  return series.map((s) => (times.get(s.name)! > 1 ? withoutStars(s.name, s.stars ?? []) : s.name))
}

/** The rhythm of a sender that is slower than its bucket: ms between its points. */
function rhythmOf(s: Series): number | undefined {
  return s.interval && s.bucket_resolution && s.interval > s.bucket_resolution ? s.interval : undefined
}

/** Says the rhythm of a line, '' when it has a point in every slot of its bucket. */
export function rhythm(l: Line): string {
  return l.rhythm ? `every ${duration(l.rhythm)} in a ${duration(l.slot)} bucket` : ''
}

/** Where a sender is slower than its bucket, the slots between two points that follow each other are no gap. */
function joined(values: Values | undefined, step: number, interval: number | undefined): Values | undefined {
  if (!values || !interval || interval <= step) return values
  const out = [...values]
  let last = -1
  values.forEach((v, i) => {
    if (v === null || v === undefined) return
    // Half an interval more: senders are not that exact.
    if (last >= 0 && (i - last) * step <= 1.5 * interval) out.fill(undefined, last + 1, i)
    last = i
  })
  return out
}

function axis(start: number, series: Series[], steps: number[]): number[] {
  if (steps.length <= 1) {
    const step = steps[0] ?? 1000
    const n = Math.max(0, ...series.map((s) => s.values.length))
    return Array.from({ length: n }, (_, i) => (start + i * step) / 1000)
  }
  const times = new Set<number>()
  for (const step of steps) {
    const n = Math.max(...series.filter((s) => s.resolution === step).map((s) => s.values.length))
    for (let i = 0; i < n; i++) times.add(start + i * step)
  }
  return [...times].sort((a, b) => a - b).map((t) => t / 1000)
}

function spread(values: Values, s: Series, start: number, place: Map<number, number>, length: number): Values {
  const out: Values = new Array<undefined>(length).fill(undefined)
  values.forEach((v, i) => (out[place.get(start + i * s.resolution)!] = v))
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

/** Values or columns with a value, over all series. */
export function pointsOf(data: ChartData): number {
  return data.lines.reduce((n, l) => n + l.stats.points, 0)
}
