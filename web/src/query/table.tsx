import { useEffect, useState } from 'preact/hooks'
import { count, duration, exact } from '../format'
import { Swatch } from './legend'
import { slowness, timeAt, unknownText, type ChartData, type Line } from './data'

const page = 200 // rows

/** The values as a table, the latest last, a page at a time. */
export function ValueTable({ data, hidden, utc }: { data: ChartData; hidden: ReadonlySet<number>; utc: boolean }) {
  const lines = data.lines.filter((l) => !hidden.has(l.index))
  const pages = Math.max(1, Math.ceil(data.x.length / page))
  const [at, setAt] = useState(pages - 1)
  useEffect(() => setAt((n) => Math.min(n, pages - 1)), [pages])
  const from = Math.min(at, pages - 1) * page
  const rows = data.x.slice(from, from + page)
  return (
    <div class="values">
      {pages > 1 && (
        <p class="pager">
          <button disabled={at === 0} onClick={() => setAt(0)}>First</button>
          <button disabled={at === 0} onClick={() => setAt(at - 1)}>Earlier</button>
          <span>rows {count(from + 1)} to {count(from + rows.length)} of {count(data.x.length)}</span>
          <button disabled={at >= pages - 1} onClick={() => setAt(at + 1)}>Later</button>
          <button disabled={at >= pages - 1} onClick={() => setAt(pages - 1)}>Last</button>
        </p>
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Time {utc ? '(UTC)' : '(local)'}{data.reduced && `, averages of ${[...new Set(lines.map((l) => duration(l.resolution)))].join(', ')}`}</th>
              {lines.map((l) => <th key={l.index}><Swatch color={l.color} /> {l.name}{l.unit && ` (${l.unit})`}{slowness(l) && <small> {slowness(l)}</small>}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((t, i) => (
              <tr key={t}>
                <td>{timeAt(data, from + i, utc)}</td>
                {lines.map((l) => <Cell key={l.index} {...{ l, data }} at={from + i} />)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

function Cell({ l, data, at }: { l: Line; data: ChartData; at: number }) {
  const v = l.values[at]
  const lost = unknownText(l, data, at)
  if (v === null || v === undefined) return <td class={lost ? 'lost' : 'gap'}>{lost ? 'unknown' : v === null ? 'no point' : ''}</td>
  return <td class={lost && 'lost'}>{exact(v)}{lost && <small> {lost}</small>}</td>
}
