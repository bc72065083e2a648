import uPlot from 'uplot'
import { useEffect, useRef } from 'preact/hooks'
import { momentOfNs, si, tickTexts } from '../format'
import { msOf, slowness, timeAt, unknownText, type ChartData, type Line } from './data'
import { alone, joined } from './join'

interface Props {
  data: ChartData
  hidden: ReadonlySet<number>
  utc: boolean
  theme: string // a change of colours draws anew
  height: number
  onZoom?: (fromMs: number, toMs: number) => void
  onDrawn?: (ms: number) => void
  label: string
}

const day = 86_400

/** Half of a date below the last tick, in pixels. */
const dateRoom = 38

/** How ticks are written, by their distance in seconds; the day below the first of each. */
const date = '\n{YYYY}-{MM}-{DD}'
const ticks: uPlot.Axis.Values = [
  [day * 365, '{YYYY}', null, null, null, null, null, null, 1],
  [day * 28, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [day, '{DD} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', date, null, date, null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', date, null, date, null, null, null, 1],
  [0.001, '{HH}:{mm}:{ss}.{fff}', date, null, date, null, null, null, 1],
]

/** A chart of uPlot. New values of the same series move it; it is made anew only for other series. */
export function Chart(p: Props) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const latest = useRef(p)
  latest.current = p
  const shape = JSON.stringify([p.data.reduced, p.utc, p.theme, p.height, p.data.lines.map((l) => [l.name, l.unit, l.color])])

  useEffect(() => {
    const { data } = latest.current
    const box = host.current!
    const began = performance.now()
    const u = new uPlot(options(box, latest), table(data), box)
    plot.current = u
    // uPlot draws in a microtask of its own.
    queueMicrotask(() => latest.current.onDrawn?.(performance.now() - began))
    const resize = new ResizeObserver(() => u.setSize({ width: box.clientWidth, height: latest.current.height }))
    resize.observe(box)
    return () => {
      resize.disconnect()
      u.destroy()
      plot.current = undefined
    }
  }, [shape])

  const first = useRef(true)
  useEffect(() => {
    if (first.current) {
      first.current = false
      return
    }
    const u = plot.current
    if (!u || u.data[0] === p.data.x) return
    const began = performance.now()
    u.setData(table(p.data))
    queueMicrotask(() => latest.current.onDrawn?.(performance.now() - began))
  }, [p.data, shape])

  useEffect(() => {
    const u = plot.current
    if (!u) return
    const each = p.data.reduced ? 3 : 1
    u.batch(() => {
      p.data.lines.forEach((l, i) => {
        const show = !p.hidden.has(l.index)
        for (let k = 0; k < each; k++) {
          if (u.series[1 + i * each + k]!.show !== show) u.setSeries(1 + i * each + k, { show })
        }
      })
    })
  }, [p.hidden, shape])

  return <div class="chart" ref={host} role="img" aria-label={p.label} />
}

/** The columns of uPlot: of reduced series the average, the maximum and the minimum. */
function table(d: ChartData): uPlot.AlignedData {
  const columns: (number | null | undefined)[][] = [d.x]
  for (const l of d.lines) {
    const drawn = joined(l, d.x)
    columns.push(drawn)
    if (d.reduced) columns.push(l.max ? joined(l, d.x, l.max) : drawn, l.min ? joined(l, d.x, l.min) : drawn)
  }
  return columns as unknown as uPlot.AlignedData
}

function css(host: Element, name: string): string {
  return getComputedStyle(host).getPropertyValue(name).trim()
}

/** Units in the order in which they come: each has a scale of its own. */
function unitsOf(lines: Line[]): string[] {
  const units = [...new Set(lines.map((l) => l.unit))]
  return units.length ? units : ['']
}

function options(host: HTMLDivElement, latest: { current: Props }): uPlot.Options {
  const { data, utc, height, hidden, onZoom } = latest.current
  const ink = css(host, '--ink-2')
  const grid = { stroke: css(host, '--line'), width: 1 }
  const font = `12px ${css(host, '--sans')}`
  const units = unitsOf(data.lines)
  const scale = (unit: string) => `y${units.indexOf(unit)}`
  const series: uPlot.Series[] = [{}]
  const bands: uPlot.Band[] = []
  for (const l of data.lines) {
    const show = !hidden.has(l.index)
    const at = series.length
    const few = (u: uPlot, _i: number, from: number, to: number) => to - from < u.bbox.width / devicePixelRatio / 14
    series.push({ label: l.name, scale: scale(l.unit), stroke: l.color, width: 1.5, show, spanGaps: false, points: { show: few, filter: dots, size: 4, fill: l.color } })
    if (data.reduced) {
      const edge: uPlot.Series = { scale: scale(l.unit), stroke: faint(l.color, 0.45), width: 1, show, points: { show: false } }
      series.push(edge, { ...edge })
      bands.push({ series: [at + 1, at + 2], fill: faint(l.color, 0.18) })
    }
  }
  const axes: uPlot.Axis[] = [{ stroke: ink, font, grid, ticks: grid, space: 80, values: ticks }]
  units.slice(0, 2).forEach((unit, i) => {
    axes.push({
      scale: `y${i}`, side: i === 0 ? 3 : 1, stroke: ink, font, grid: i === 0 ? grid : { show: false }, ticks: grid,
      size: axisSize, values: (_u, ticks) => tickTexts(ticks, unit),
    })
  })
  const scales: uPlot.Scales = { x: { time: true, range: (_u, min, max) => [min, max] } }
  units.forEach((_, i) => (scales[`y${i}`] = { range: spaced }))
  return {
    width: host.clientWidth, height, series, bands, axes, scales,
    legend: { show: false },
    padding: [null, units.length > 1 ? null : dateRoom, null, null],
    tzDate: utc ? (t) => uPlot.tzDate(new Date(t * 1000), 'Etc/UTC') : undefined,
    cursor: { drag: { x: onZoom !== undefined, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 24 } },
    focus: { alpha: 0.35 },
    hooks: {
      setSelect: [(u) => {
        const zoom = latest.current.onZoom
        if (u.select.width > 3 && zoom) zoom(u.posToVal(u.select.left, 'x') * 1000, u.posToVal(u.select.left + u.select.width, 'x') * 1000)
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
      }],
    },
    plugins: [tooltip(latest), damage(host, latest), marks(latest)],
  }
}

/** Room above and below, and the 0 where values are not far from it. */
function spaced(_u: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1]
  if (min >= 0 && min <= 0.5 * max) min = 0
  if (max <= 0 && max >= 0.5 * min) max = 0
  const room = (max - min) * 0.07 || Math.abs(max) * 0.1 || 1
  return [min === 0 ? 0 : min - room, max === 0 ? 0 : max + room]
}

/** The points to draw: all when they are few, else those that no line would show. */
function dots(u: uPlot, series: number, few: boolean): number[] | null {
  if (few) return null
  const list = alone(u.data[series]!)
  return list.length ? list : null
}

/** The width of an axis: its widest label as it will be drawn, the ticks, and the gap between. */
function axisSize(u: uPlot, labels: string[] | null, axis: number): number {
  if (!labels?.length) return 40
  u.ctx.save()
  u.ctx.font = (u.axes[axis]!.font as unknown as string[])[0]! // uPlot keeps it in pixels of the canvas
  const widest = Math.max(...labels.map((text) => u.ctx.measureText(text).width)) / devicePixelRatio
  u.ctx.restore()
  return Math.max(40, Math.ceil(widest) + 18)
}

/** A colour with an alpha; canvas has no variables. */
function faint(color: string, alpha: number): string {
  if (color.startsWith('#')) return color + Math.round(alpha * 255).toString(16).padStart(2, '0')
  return color.replace(')', ` / ${alpha})`)
}

/** Hatches where damage took slots of a line that is shown. */
function damage(host: Element, latest: { current: Props }): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (u) => {
        const { data, hidden } = latest.current
        const { ctx, bbox } = u
        const holes = merged(data.lines.filter((l) => !hidden.has(l.index)).flatMap((l) => l.holes))
        if (!holes.length) return
        ctx.save()
        ctx.beginPath()
        for (const [from, to] of holes) {
          const [a, b] = [u.valToPos(from / 1000, 'x', true), u.valToPos(to / 1000, 'x', true)]
          ctx.rect(a, bbox.top, Math.max(b - a, 2 * devicePixelRatio), bbox.height)
        }
        ctx.clip()
        ctx.fillStyle = css(host, '--warn-page')
        ctx.fillRect(bbox.left, bbox.top, bbox.width, bbox.height)
        ctx.strokeStyle = faint(css(host, '--warn'), 0.4)
        ctx.lineWidth = devicePixelRatio
        ctx.beginPath()
        for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += 9 * devicePixelRatio) {
          ctx.moveTo(x, bbox.top + bbox.height)
          ctx.lineTo(x + bbox.height, bbox.top)
        }
        ctx.stroke()
        ctx.restore()
      },
    },
  }
}

/** Marks the times of events: a line from top to bottom each, one for those that share a pixel. */
function marks(latest: { current: Props }): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const { ctx, bbox } = u
        ctx.save()
        ctx.lineWidth = devicePixelRatio
        ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio])
        for (const { list, color } of latest.current.data.events) {
          ctx.strokeStyle = color
          ctx.beginPath()
          let before = -1
          for (const e of list) {
            const x = Math.round(u.valToPos(msOf(e) / 1000, 'x', true))
            if (x === before || x < bbox.left || x > bbox.left + bbox.width) continue
            before = x
            ctx.moveTo(x, bbox.top)
            ctx.lineTo(x, bbox.top + bbox.height)
          }
          ctx.stroke()
        }
        ctx.restore()
      },
    },
  }
}

/** Ranges that touch become one. */
function merged(ranges: [number, number][]): [number, number][] {
  const out: [number, number][] = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = out.at(-1)
    if (last && from <= last[1]) out[out.length - 1] = [last[0], Math.max(last[1], to)]
    else out.push([from, to])
  }
  return out
}

const shownInTip = 12
const near = 5 // pixels from the cursor within which an event is told of

/** The values at the cursor, the nearest first in weight. */
function tooltip(latest: { current: Props }): uPlot.Plugin {
  const tip = document.createElement('div')
  tip.className = 'tip'
  const fill = (u: uPlot, at: number) => {
    const { data, hidden, utc } = latest.current
    const each = data.reduced ? 3 : 1
    const rows = data.lines
      .map((l, i) => {
        // Where the line passes over a gap uPlot marks the nearest point of it: that one is told, with its time.
        const lost = unknownText(l, data, at)
        const passed = !lost && l.values[at] === null && u.data[1 + i * each]![at] === undefined
        const own = passed ? (u.cursor.idxs![1 + i * each] ?? at) : at
        return { l, own, v: l.values[own], low: l.min?.[own], high: l.max?.[own], lost }
      })
      .filter((r) => !hidden.has(r.l.index) && (r.v !== undefined || r.lost))
      .sort((a, b) => (b.v ?? -Infinity) - (a.v ?? -Infinity))
    tip.replaceChildren(head(data, at, utc))
    for (const r of rows.slice(0, shownInTip)) {
      const row = tip.appendChild(document.createElement('div'))
      const mark = row.appendChild(document.createElement('i'))
      mark.style.background = r.l.color
      row.appendChild(document.createElement('span')).textContent = r.l.name
      const value = row.appendChild(document.createElement('b'))
      value.textContent = r.v == null ? r.lost || 'no point' : si(r.v, r.l.unit)
      for (const text of [r.own === at ? '' : timeAt(data, r.own, utc).slice(11), r.v == null ? '' : r.lost, slowness(r.l)]) {
        if (text) row.appendChild(document.createElement('small')).textContent = text
      }
      if (r.low != null && r.high != null && r.low !== r.high) {
        row.appendChild(document.createElement('small')).textContent = `${si(r.low)} … ${si(r.high)}`
      }
    }
    if (rows.length > shownInTip) tip.appendChild(document.createElement('div')).textContent = `and ${rows.length - shownInTip} more`
    tellEvents(tip, u, latest.current)
  }
  return {
    hooks: {
      init: (u) => {
        tip.hidden = true
        u.over.appendChild(tip)
        u.over.addEventListener('mouseleave', () => (tip.hidden = true))
      },
      setCursor: (u) => {
        const { idx, left = -1, top = -1 } = u.cursor
        tip.hidden = idx == null || left < 0
        if (tip.hidden) return
        fill(u, idx!)
        const right = left + tip.offsetWidth + 24 > u.over.clientWidth
        tip.style.left = `${right ? Math.max(0, left - tip.offsetWidth - 14) : left + 14}px`
        tip.style.top = `${Math.max(0, Math.min(top - 10, u.over.clientHeight - tip.offsetHeight))}px`
      },
    },
  }
}

/** Adds the events that are near the cursor. */
function tellEvents(tip: HTMLElement, u: uPlot, { data, utc }: Props): void {
  const [from, to] = [-near, near].map((by) => u.posToVal(u.cursor.left! + by, 'x') * 1000) as [number, number]
  const found = data.events.flatMap((m) => m.list.filter((e) => msOf(e) >= from && msOf(e) <= to).map((e) => ({ ...e, ...m })))
  for (const { time, body, color } of found.slice(0, shownInTip)) {
    const row = tip.appendChild(document.createElement('div'))
    row.appendChild(document.createElement('i')).style.background = color
    row.appendChild(document.createElement('small')).textContent = momentOfNs(time, utc).slice(11)
    row.appendChild(document.createElement('span')).textContent = body.slice(0, 200)
  }
  if (found.length > shownInTip) tip.appendChild(document.createElement('div')).textContent = `and ${found.length - shownInTip} more events`
}

function head(d: ChartData, at: number, utc: boolean): HTMLElement {
  const title = document.createElement('div')
  title.className = 'tip-time'
  title.textContent = timeAt(d, at, utc)
  return title
}
