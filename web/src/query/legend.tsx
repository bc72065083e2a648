import { count, percent, si } from '../format'
import { endedLast, endText, slowness, type Line } from './data'

interface Props {
  lines: Line[]
  hidden: ReadonlySet<number>
  older: boolean // what is unknown has older values
  utc: boolean
  onHide: (hidden: number[]) => void
}

/** Every series with its figures, those last that have ended; its name hides and shows it, "only" leaves it alone. */
export function Legend({ lines, hidden, older, utc, onHide }: Props) {
  const toggle = (index: number) => {
    const next = new Set(hidden)
    if (!next.delete(index)) next.add(index)
    onHide([...next].sort((a, b) => a - b))
  }
  const only = (index: number) => {
    const others = lines.map((l) => l.index).filter((i) => i !== index)
    const alone = !hidden.has(index) && others.every((i) => hidden.has(i))
    onHide(alone ? [] : others)
  }
  return (
    <div class="legend scroll">
      <table>
        <thead>
          <tr>
            <th>Series{hidden.size > 0 && <button class="link" onClick={() => onHide([])}>show all</button>}</th>
            <th>Min</th><th>Max</th><th>Avg</th><th>Last</th><th title="Points ÷ points that the interval of the sender promises">Coverage</th>
          </tr>
        </thead>
        <tbody>
          {endedLast(lines).map((l) => (
            <tr key={l.index} class={[hidden.has(l.index) && 'off', l.ended && 'ended'].filter(Boolean).join(' ')} title={endText(l, utc)}>
              <td>
                <div class="who">
                  <button class="name" aria-pressed={!hidden.has(l.index)} title={[endText(l, utc), 'Show or hide'].filter(Boolean).join('\n')} onClick={() => toggle(l.index)}>
                    <Swatch color={l.color} /> <span>{l.name}</span>
                  </button>
                  {l.ended && <small>ended</small>}
                  {lines.length > 1 && <button class="link only" onClick={() => only(l.index)}>only</button>}
                </div>
              </td>
              <td>{si(l.stats.min, l.unit)}</td>
              <td>{si(l.stats.max, l.unit)}</td>
              <td>{si(l.stats.avg, l.unit)}</td>
              <td>{si(l.stats.last, l.unit)}</td>
              <td class={l.partial ? 'partial' : ''}>
                <span class="meter"><Bar share={l.coverage} /></span> {percent(l.coverage)}{slowness(l) && <small> {slowness(l)}</small>}
                {l.unknown && <small> {count(l.unknown.slots)} {older ? 'older' : 'unknown'}</small>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function Swatch({ color }: { color: string }) {
  return (
    <svg class="swatch" width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="3" fill={color} /></svg>
  )
}

/** A filled share, without a style in the document. */
export function Bar({ share, color = 'currentColor' }: { share: number; color?: string }) {
  return (
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width={Math.max(0, Math.min(1, share)) * 100} height="6" fill={color} />
    </svg>
  )
}
