import { count, moment } from '../format'
import type { ChartData, Line } from './data'
import type { Answer } from './run'

const most = 5 // series of which it is said what is unknown

interface Props {
  answer: Answer
  utc: boolean
  onOlder: (show: boolean) => void
}

/** What a reader has to know before believing an answer: what does not exist, what damage took, and that there is nothing. */
export function Hints({ answer, utc, onOlder }: Props) {
  const { data, missing, unmatched } = answer
  return (
    <>
      {missing.map((m) => <p key={m.selector} class="hint">{m.message}</p>)}
      {unmatched.map((u) => <p key={u.offset} class="hint">Left out, without a partner: {u.series.join(', ')}{u.more > 0 && ` and ${count(u.more)} more`} of {u.selector}</p>)}
      <Damage data={data} utc={utc} onOlder={onOlder} />
      {data.events.some((e) => e.damaged.length) && (
        <p class="hint">Damage took {count(data.events.flatMap((e) => e.damaged).reduce((n, g) => n + g.events, 0))} events of this range. What is shown is not all there was.</p>
      )}
      {answer.points === 0 && (data.lines.length > 0 || data.events.length === 0) && <p class="hint">No series has a point in this range: it is empty, not zero. Try a longer range.</p>}
    </>
  )
}

function Damage({ data, utc, onOlder }: { data: ChartData; utc: boolean; onOlder: (show: boolean) => void }) {
  const lost = data.lines.filter((l) => l.unknown)
  if (!lost.length) return null
  return (
    <div class="hint damage">
      <span>
        {data.older
          ? 'Damage took newer values. What stands in their place is older and may be out of date; it is marked.'
          : 'Damage took values: these slots are unknown, neither set nor unset. Older values may be there, and out of date.'}
      </span>
      <button aria-pressed={data.older} onClick={() => onOlder(!data.older)}>Older values</button>
      <ul>
        {lost.slice(0, most).map((l) => <li key={l.index}>{l.name}: {where(l, utc)}</li>)}
        {lost.length > most && <li>and {count(lost.length - most)} more series</li>}
      </ul>
    </div>
  )
}

/** How many slots of a series are unknown, where, and what was hit. */
function where(l: Line, utc: boolean): string {
  const u = l.unknown!
  const ranges = u.ranges.length + (u.more ?? 0)
  const [from, to] = [u.ranges[0]?.[0], u.ranges.at(-1)?.[1]]
  const slots = `${count(u.slots)} ${u.slots === 1 ? 'slot' : 'slots'}`
  const span = from === undefined ? '' : ` from ${moment(from, utc)} to ${moment(to!, utc)}`
  const parts = ranges > 1 ? ` in ${count(ranges)} ranges${u.more ? `, ${count(u.more)} of them behind that` : ''}` : ''
  return `${slots}${span}${parts}: ${u.why.join('; ')}`
}
