import { useState } from 'preact/hooks'
import { api, type Account, type AccountRow } from '../api'
import { count, moment, si } from '../format'
import { useLoad } from '../hooks'
import { Swatch } from '../query/legend'
import { link } from '../url'

const minutes = 60

const kinds = ['accepted', 'duplicate', 'conflicting', 'late', 'unset'] as const
const meanings: Record<(typeof kinds)[number], string> = {
  accepted: 'Stored in a slot that was empty', duplicate: 'The slot held the same value', conflicting: 'Stored over a different value: two senders under one name, or a correction',
  late: 'Stored behind the blocks in memory. Of a backfill all points are late, in whatever order they come', unset: 'An explicit "no value", which never erases',
}
const colors: Record<string, string> = { accepted: '#3987e5', duplicate: '#8b6cef', conflicting: '#c99700', late: '#12a375', unset: '#8a94a3' }
const refusals = ['#e5484d', '#e8710a', '#d6409f', '#b26a3c', '#ad57c9', '#f0668a', '#a33a2a', '#c2562d', '#942b6b', '#7d4a2b']

export interface Layer { name: string; color: string; values: number[]; total: number }

/** What became of the points of each minute, every reason by itself; reasons without a point are left out. */
export function layers(rows: AccountRow[], bucket: string, now: number): Layer[] {
  const list = new Map<string, Layer>()
  const layer = (name: string, color: string) => {
    const known = list.get(name) ?? { name, color, values: new Array<number>(minutes).fill(0), total: 0 }
    list.set(name, known)
    return known
  }
  const add = (l: Layer, minute: number, n: number) => {
    const at = minute - (now - minutes + 1)
    if (at < 0 || at >= minutes || !n) return
    l.values[at]! += n
    l.total += n
  }
  for (const kind of kinds) layer(kind, colors[kind]!)
  const reasons = [...new Set(rows.flatMap((r) => Object.keys(r.refused)))].sort()
  reasons.forEach((reason, i) => layer(`refused: ${reason}`, refusals[i % refusals.length]!))
  for (const r of rows) {
    if (bucket && r.bucket !== bucket) continue
    for (const kind of kinds) add(layer(kind, ''), r.minute ?? 0, r[kind])
    for (const [reason, n] of Object.entries(r.refused)) add(layer(`refused: ${reason}`, ''), r.minute ?? 0, n)
  }
  return [...list.values()].filter((l) => l.total > 0)
}

export function AccountSection({ utc }: { utc: boolean }) {
  const [bucket, setBucket] = useState('')
  const last = useLoad((signal) => api.minutes(minutes, signal), [], 5000)
  const totals = useLoad((signal) => api.account(signal), [], 5000)
  const now = Math.floor(Date.now() / 60_000)
  const names = totals.value?.rows.map((r) => r.bucket).filter((n) => n !== '') ?? []
  const shown = last.value ? layers(last.value.rows, bucket, now) : []
  return (
    <section class="card">
      <div class="head">
        <h2>Account</h2>
        <span class="note">what became of every point, by minute of arrival</span>
        <span class="spring" />
        <select aria-label="Bucket" value={bucket} onChange={(e) => setBucket(e.currentTarget.value)}>
          <option value="">all buckets</option>
          {names.map((n) => <option key={n} value={n}>{n}</option>)}
        </select>
      </div>
      {shown.length ? <Stack layers={shown} now={now} utc={utc} /> : <p class="blank note">{last.value ? 'No point arrived in the last hour.' : 'Loading …'}</p>}
      {totals.value && <Totals account={totals.value} />}
    </section>
  )
}

const width = 1200
const height = 200
const left = 60

/** Columns of minutes, one layer over the other. */
function Stack({ layers: list, now, utc }: { layers: Layer[]; now: number; utc: boolean }) {
  const sums = Array.from({ length: minutes }, (_, i) => list.reduce((n, l) => n + l.values[i]!, 0))
  const top = Math.max(1, ...sums)
  const step = (width - left) / minutes
  const scale = (height - 8) / top
  const title = (i: number) => [
    moment((now - minutes + 1 + i) * 60_000, utc).slice(0, 16),
    ...list.filter((l) => l.values[i]).map((l) => `${l.name} ${count(l.values[i]!)}`),
  ].join('\n')
  const column = (i: number) => {
    let y = height
    return list.map((l) => {
      const h = l.values[i]! * scale
      if (!h) return null
      // What was refused is seen, however little it is.
      const seen = Math.max(h, 1.5)
      y -= seen
      return <rect key={l.name} x={left + i * step + 1} y={y} width={step - 2} height={seen} fill={l.color} />
    })
  }
  return (
    <>
      <svg class="stack" viewBox={`0 0 ${width} ${height + 22}`} role="img" aria-label="Points by minute and by what became of them">
        {[0, 0.5, 1].map((f) => (
          <g key={f}>
            <line x1={left} x2={width} y1={height - f * (height - 8)} y2={height - f * (height - 8)} />
            <text x={left - 8} y={height - f * (height - 8) + 4} text-anchor="end">{si(top * f)}</text>
          </g>
        ))}
        {sums.map((_, i) => <g key={i}><rect class="catch" x={left + i * step} y="0" width={step} height={height}><title>{title(i)}</title></rect><g class="pass">{column(i)}</g></g>)}
        {[0, 15, 30, 45, 59].map((i) => (
          <text key={i} x={left + (i + 0.5) * step} y={height + 17} text-anchor={i === 59 ? 'end' : 'middle'}>{moment((now - minutes + 1 + i) * 60_000, utc).slice(11, 16)}</text>
        ))}
      </svg>
      <p class="keys">{list.map((l) => <span key={l.name}><Swatch color={l.color} /> {l.name} <b>{count(l.total)}</b></span>)}</p>
    </>
  )
}

function Totals({ account }: { account: Account }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr><th>Since the data directory was made</th><th>Received</th>{kinds.map((k) => <th key={k} title={meanings[k]}>{k[0]!.toUpperCase() + k.slice(1)}</th>)}<th>Refused</th></tr>
        </thead>
        <tbody>
          {account.rows.map((r) => {
            const refused = Object.values(r.refused).reduce((a, b) => a + b, 0)
            const reasons = Object.entries(r.refused).map(([reason, n]) => `${reason} ${count(n)}`).join(', ')
            return (
              <tr key={r.bucket}>
                <td>{r.bucket ? <a href={link({ page: 'buckets', bucket: r.bucket })}>{r.bucket}</a> : <i>deleted buckets</i>}</td>
                <td>{count(r.received)}</td>
                {kinds.map((k) => <td key={k}>{count(r[k])}</td>)}
                <td class={refused ? 'bad' : ''}>{count(refused)}{reasons && <small> ({reasons})</small>}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
