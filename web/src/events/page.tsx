import { useEffect, useState } from 'preact/hooks'
import { api, askEvents } from '../api'
import { findRange, rangeText } from '../dql/range'
import { count, duration, moment } from '../format'
import { useLoad } from '../hooks'
import { Copy } from '../query/empty'
import { Ranges } from '../query/ranges'
import { limitOf, mostEvents, type Go, type State } from '../url'
import { readEvents, type Events } from './json'
import { EventTable } from './table'
import { useTail, type Tail } from './tail'

/** The events of a bucket: those of a range, or those that come from now on. */
export function EventsPage({ state, go }: { state: State; go: Go }) {
  const [turn, setTurn] = useState(0)
  return (
    <div class="page events">
      <div class="head"><h1>Events</h1></div>
      <Form state={state} go={go} onAgain={() => setTurn((n) => n + 1)} />
      {!state.bucket && <p class="note">Choose a bucket.</p>}
      {state.bucket && !state.live && <Found state={state} go={go} turn={turn} />}
      {state.bucket && state.live && <Live key={JSON.stringify([state.bucket, state.filter, state.limit])} state={state} />}
    </div>
  )
}

function Form({ state, go, onAgain }: { state: State; go: Go; onAgain: () => void }) {
  const buckets = useLoad((signal) => api.buckets(signal), [])
  const [bucket, setBucket] = useState(state.bucket)
  const [filter, setFilter] = useState(state.filter)
  const [limit, setLimit] = useState(String(state.limit))
  useEffect(() => {
    setBucket(state.bucket)
    setFilter(state.filter)
    setLimit(String(state.limit))
  }, [state.bucket, state.filter, state.limit])
  const written = { bucket: bucket.trim(), filter: filter.trim(), limit: limitOf(limit) }
  const show = (e: Event) => {
    e.preventDefault()
    if (written.bucket === state.bucket && written.filter === state.filter && written.limit === state.limit) onAgain()
    else go(written)
  }
  const shown = findRange(state.range)?.range
  return (
    <>
      <form class="create" aria-label="Which events" onSubmit={show}>
        <label>Bucket <input list="event-buckets" required value={bucket} onInput={(e) => setBucket(e.currentTarget.value)} /></label>
        <datalist id="event-buckets">{(buckets.value ?? []).map((b) => <option key={b.name} value={b.name} />)}</datalist>
        <label class="filter">Filter <input value={filter} spellcheck={false} placeholder="user == 'ann' AND status >= 500" onInput={(e) => setFilter(e.currentTarget.value)} /></label>
        <label>Limit <input type="number" min="1" max={mostEvents} required value={limit} onInput={(e) => setLimit(e.currentTarget.value)} /></label>
        <button class="main">Show</button>
      </form>
      <div class="tools">
        {!state.live && <Ranges query={state.range} shown={shown?.kind === 'last' ? lastOf(shown.span) : undefined} utc={state.utc} onRange={(range) => go({ ...written, range })} />}
        <button class="toggle" aria-pressed={state.live} disabled={!written.bucket} title="The events that come from now on" onClick={() => go({ ...written, live: !state.live })}>
          <span class="dot" /> Live
        </button>
      </div>
    </>
  )
}

function lastOf(span: number): { from: number; to: number } {
  const to = Date.now()
  return { from: to - span, to }
}

interface Answer extends Events {
  key: string // what was asked
  from: number // unix ms
  to: number
  took: number // ms, until the last byte was here
}

function Found({ state, go, turn }: { state: State; go: Go; turn: number }) {
  const { bucket, filter, range, limit, utc } = state
  const key = JSON.stringify([bucket, filter, range, limit, turn])
  const { value, error } = useLoad(async (signal): Promise<Answer> => {
    const { from, to } = endsOf(range)
    const reply = await askEvents(bucket, filter, from, to, limit, signal)
    return { ...readEvents(reply.text), key, from, to, took: reply.took }
  }, [key])
  if (error) return <pre class="problem" role="alert">{error}</pre>
  if (!value) return <p class="note">Loading …</p>
  const last = value.list.at(-1)
  const next = last && Number(last.time / 1_000_000n)
  return (
    <section class="answer" aria-busy={value.key !== key}>
      <div class="bar">
        <span class="timing" role="status">
          {`${value.more ? 'the earliest ' : ''}${count(value.list.length)} ${value.list.length === 1 ? 'event' : 'events'} · node ${duration(value.micros / 1000)} · round trip ${duration(value.took)}`}
        </span>
      </div>
      {value.damaged.length > 0 && (
        <div class="hint">
          Damage took {count(value.damaged.reduce((n, g) => n + g.events, 0))} events of this range. What is shown is not all there was.
          <ul>{value.damaged.slice(0, 5).map((g) => <li key={g.start}>{count(g.events)} from {moment(Math.floor(g.start / 1e6), utc)} to {moment(Math.ceil(g.end / 1e6), utc)}</li>)}</ul>
          {value.damaged.length > 5 && <p>and in {count(value.damaged.length - 5)} more ranges</p>}
        </div>
      )}
      {value.more && next !== undefined && (
        <p class="hint">
          The range has more events than the limit.
          {next > value.from && <button class="link" onClick={() => go({ range: rangeText({ kind: 'between', from: next, to: value.to }) })}>Later ones</button>}
        </p>
      )}
      {value.list.length === 0
        ? <None bucket={bucket} filter={filter} />
        : <EventTable key={value.key} list={value.list} utc={utc} />}
    </section>
  )
}

/** Both ends of a range, as unix ms; the node takes events before the end. */
function endsOf(text: string): { from: number; to: number } {
  const range = findRange(text)?.range
  if (range?.kind === 'last') return lastOf(range.span)
  if (range?.kind === 'between') return { from: Math.floor(range.from), to: Math.ceil(range.to) }
  throw new Error(`The range ${text} is none that this page knows. Known are LAST 1h and BETWEEN "2026-01-02 15:04:05" AND "2026-01-02 16:04:05".`)
}

function None({ bucket, filter }: { bucket: string; filter: string }) {
  // The line is for a shell, where a ' would end the address.
  const to = new URL(`events/${encodeURIComponent(bucket).replaceAll("'", '%27')}`, document.baseURI)
  return (
    <>
      <p class="hint">No event {filter && 'that the filter takes '}is in this range. Try a longer range{filter && ', or no filter'}.</p>
      <p class="note">This line writes one:</p>
      <Copy text={`curl --data '{"hello":"world"}' '${to.href}'`} />
    </>
  )
}

function Live({ state }: { state: State }) {
  const { bucket, filter, limit, utc } = state
  const tail = useTail(bucket, filter, limit)
  const [held, hold] = useState<Tail>() // what is shown during a pause
  const shown = held ?? tail
  const fresh = tail.seen - shown.seen
  return (
    <section class="answer">
      <div class="bar">
        <button aria-pressed={held !== undefined} onClick={() => hold(held ? undefined : tail)}>
          {held ? `Go on${fresh ? ` (${count(fresh)} new)` : ''}` : 'Pause'}
        </button>
        <span class="timing" role="status">{tailText(tail, shown, held !== undefined)}</span>
      </div>
      {tail.error && <pre class="problem" role="alert">{tail.error}</pre>}
      {tail.missed > 0 && <p class="hint">{count(tail.missed)} events came faster than they could be sent, and are not here. They are stored.</p>}
      {tail.broken > 0 && <p class="hint">The tail broke off {tail.broken === 1 ? 'once' : `${count(tail.broken)} times`}. Events that were written until it was back are not here. They are stored.</p>}
      {shown.list.length > 0 && <EventTable list={shown.list.toReversed()} utc={utc} />}
    </section>
  )
}

function tailText(tail: Tail, shown: Tail, paused: boolean): string {
  const state = paused ? 'paused' : tail.open ? 'live' : tail.error ? 'not connected' : 'connecting …'
  const kept = shown.list.length < shown.seen ? `, the newest ${count(shown.list.length)} are shown` : ''
  return `${state} · ${count(shown.seen)} ${shown.seen === 1 ? 'event' : 'events'} since it began${kept}`
}
