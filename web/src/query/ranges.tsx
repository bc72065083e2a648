import { useState } from 'preact/hooks'
import { findRange, spanMs, withRange, type Range } from '../dql/range'

const spans = ['5m', '15m', '1h', '6h', '1d', '1w', '30d', '365d']
const spanNames: Record<string, string> = { '5m': '5 m', '15m': '15 m', '1h': '1 h', '6h': '6 h', '1d': '1 d', '1w': '1 w', '30d': '30 d', '365d': '1 y' }

interface Props {
  query: string
  shown?: { from: number; to: number } // what the answer covers, unix ms
  utc: boolean
  onRange: (text: string) => void
}

/** Chooses the time range, which stands in the text of the query. */
export function Ranges({ query, shown, utc, onRange }: Props) {
  const [exact, setExact] = useState(false)
  const range = findRange(query)?.range
  const set = (r: Range) => onRange(withRange(query, r))
  const ends = range?.kind === 'between' ? range : shown
  const widen = () => {
    if (range?.kind === 'last') return set({ kind: 'last', span: range.span * 2 })
    if (ends) set({ kind: 'between', from: ends.from - (ends.to - ends.from) / 2, to: ends.to + (ends.to - ends.from) / 2 })
  }
  const shift = (by: number) => {
    if (ends) set({ kind: 'between', from: ends.from + by * (ends.to - ends.from), to: ends.to + by * (ends.to - ends.from) })
  }
  return (
    <div class="ranges" role="group" aria-label="Time range">
      <span class="segments">
        {spans.map((text) => {
          const span = spanMs(text)!
          const on = range?.kind === 'last' && range.span === span
          return <button key={text} aria-pressed={on} onClick={() => set({ kind: 'last', span })}>{spanNames[text]}</button>
        })}
      </span>
      <span class="segments">
        <button title="Half a range earlier" aria-label="Earlier" disabled={!ends} onClick={() => shift(-0.5)}>‹</button>
        <button title="Twice the range" aria-label="Zoom out" disabled={!ends && range?.kind !== 'last'} onClick={widen}>−</button>
        <button title="Half a range later" aria-label="Later" disabled={!ends} onClick={() => shift(0.5)}>›</button>
        <button aria-expanded={exact} onClick={() => setExact(!exact)}>From … to</button>
      </span>
      {exact && <Exact ends={ends} utc={utc} onSet={(from, to) => { setExact(false); set({ kind: 'between', from, to }) }} />}
    </div>
  )
}

function Exact({ ends, utc, onSet }: { ends?: { from: number; to: number }; utc: boolean; onSet: (from: number, to: number) => void }) {
  const now = Date.now()
  const [from, setFrom] = useState(field(ends?.from ?? now - 3_600_000, utc))
  const [to, setTo] = useState(field(ends?.to ?? now, utc))
  const [a, b] = [read(from, utc), read(to, utc)]
  const good = a < b
  return (
    <form class="exact" onSubmit={(e) => { e.preventDefault(); if (good) onSet(a, b) }}>
      <label>From <input type="datetime-local" step="1" value={from} onInput={(e) => setFrom(e.currentTarget.value)} /></label>
      <label>to <input type="datetime-local" step="1" value={to} onInput={(e) => setTo(e.currentTarget.value)} /></label>
      <span class="note">{utc ? 'UTC' : 'local time'}</span>
      <button class="main" disabled={!good}>Show</button>
    </form>
  )
}

function field(ms: number, utc: boolean): string {
  const shifted = utc ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000
  return new Date(Math.floor(shifted / 1000) * 1000).toISOString().slice(0, 19)
}

function read(text: string, utc: boolean): number {
  return Date.parse(utc ? `${text}Z` : text)
}
