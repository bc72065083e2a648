import { memo } from 'preact/compat'
import { useState } from 'preact/hooks'
import { count, momentInFull, momentOfNs } from '../format'
import { pretty, type Event } from './json'

const page = 500 // rows that are drawn at once
const coloured = 50_000 // characters of a body; a longer one is shown as it came

/** Events with their times and bodies, in the order of the list. */
export function EventTable({ list, utc }: { list: Event[]; utc: boolean }) {
  const [most, setMost] = useState(page)
  return (
    <>
      <div class="scroll">
        <table>
          <thead><tr><th>Time {utc ? '(UTC)' : '(local)'}</th><th>Event</th></tr></thead>
          <tbody>{list.slice(0, most).map((e) => <Row key={e} event={e} utc={utc} />)}</tbody>
        </table>
      </div>
      {list.length > most && <p><button onClick={() => setMost(most + page)}>Show {count(Math.min(page, list.length - most))} more of {count(list.length)}</button></p>}
    </>
  )
}

const Row = memo(({ event, utc }: { event: Event; utc: boolean }) => (
  <tr>
    <td><time title={momentInFull(event.time)}>{momentOfNs(event.time, utc)}</time></td>
    <td><pre>{event.body.length > coloured ? event.body : pretty(event.body).map((p) => (p.kind ? <span class={`j-${p.kind}`}>{p.text}</span> : p.text))}</pre></td>
  </tr>
))
