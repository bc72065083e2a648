import { useEffect, useState } from 'preact/hooks'
import { count, exact } from '../format'
import { Swatch } from './legend'
import { timeAt, type ChartData } from './data'

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
              <th>Time {utc ? '(UTC)' : '(local)'}</th>
              {lines.map((l) => <th key={l.index}><Swatch color={l.color} /> {l.name}{l.unit && ` (${l.unit})`}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((t, i) => (
              <tr key={t}>
                <td>{timeAt(data, from + i, utc)}</td>
                {lines.map((l) => {
                  const v = l.values[from + i]
                  return <td key={l.index} class={v === null ? 'gap' : ''}>{v === null ? 'no point' : exact(v)}</td>
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}
