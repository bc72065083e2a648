import { api, type By, type Top } from '../api'
import { quoted, tagText } from '../dql/tokens'
import { count, moment, percent, si } from '../format'
import { useLoad } from '../hooks'
import { largestCollections, matching } from '../tags/lookup'
import { link, type Go, type State } from '../url'

const limit = 50
const again = 30_000 // ms

const ways: [By, string, string][] = [
  ['prefixes', 'Prefixes', 'Beginnings of metrics, of all series'],
  ['buckets', 'Buckets', 'Buckets, with all series'],
  ['names', 'Tags', 'Names of tags, of series that have tags'],
  ['values', 'Values', 'Values of tags, likewise'],
]

/** What has most series, and what has most new ones. */
export function CardinalityPage({ state, go }: { state: State; go: Go }) {
  const { by, sort } = state
  const asked = {
    by, sort, limit,
    bucket: by === 'prefixes' ? state.bucket : '', prefix: by === 'prefixes' ? state.prefix : '', name: by === 'values' ? state.name : '',
  }
  const key = JSON.stringify(asked)
  const { value, error } = useLoad(async (signal) => ({ top: await api.top(asked, signal), key }), [key], again)
  return (
    <div class="page cardinality">
      <div class="head">
        <h1>Cardinality</h1>
        <span class="segments" role="tablist" aria-label="Count series by">
          {ways.map(([way, title, what]) => (
            <button key={way} role="tab" aria-selected={way === by} title={what} onClick={() => go({ by: way, bucket: '', prefix: '', name: '' })}>{title}</button>
          ))}
        </span>
        <span class="segments" role="group" aria-label="Order">
          <button aria-pressed={sort === 'series'} onClick={() => go({ sort: 'series' }, true)}>Most series</button>
          <button aria-pressed={sort === 'new'} onClick={() => go({ sort: 'new' }, true)}>Most new</button>
        </span>
      </div>
      <Path state={state} go={go} />
      {error && <pre class="problem" role="alert">{error}</pre>}
      {!error && !value && <p class="note">Counting …</p>}
      {value && <Elements top={value.top} busy={value.key !== key} state={state} go={go} />}
    </div>
  )
}

/** Where the table is, with ways back. */
function Path({ state, go }: { state: State; go: Go }) {
  const parts = state.prefix ? splitParts(state.prefix) : []
  const back = (change: Partial<State>) => (e: MouseEvent) => {
    if (e.ctrlKey || e.metaKey) return
    e.preventDefault()
    go(change)
  }
  if (state.by === 'values' && state.name) {
    return <p class="path"><a href={to(state, { by: 'names', name: '' })} onClick={back({ by: 'names', name: '' })}>All tags</a> / <code>{tagText(state.name)}</code></p>
  }
  if (state.by !== 'prefixes' || (!state.bucket && !parts.length)) return null
  return (
    <p class="path">
      <a href={to(state, { bucket: '', prefix: '' })} onClick={back({ bucket: '', prefix: '' })}>All buckets</a>
      {state.bucket && <> / <a href={to(state, { prefix: '' })} onClick={back({ prefix: '' })}>{state.bucket}</a></>}
      {parts.map((part, i) => {
        const prefix = parts.slice(0, i + 1).join('.')
        return <> / <a key={prefix} href={to(state, { prefix })} onClick={back({ prefix })}><code>{part}</code></a></>
      })}
    </p>
  )
}

const to = (state: State, change: Partial<State>) => link({ page: 'cardinality', by: state.by, sort: state.sort, bucket: state.bucket, prefix: state.prefix, name: state.name, ...change })

/** The parts of a metric as the node prints it, in their quotes. */
export function splitParts(text: string): string[] {
  return text.match(/'(?:[^'\\]|\\[^])*'/g) ?? [text]
}

type Element = Top['list'][number]

/** What a click on an element opens: what is below it, or a query of its series. */
export function below(by: By, e: Element): Partial<State> {
  switch (by) {
    case 'buckets':
      return { page: 'cardinality', by: 'prefixes', bucket: e.text }
    case 'names':
      return { page: 'cardinality', by: 'values', name: e.text }
    case 'prefixes':
      return e.deeper
        ? { page: 'cardinality', by: 'prefixes', bucket: e.bucket!, prefix: e.text }
        : { page: 'query', query: `SELECT ${e.text} BUCKET ${quoted(e.bucket!)} LAST 1h` }
    default:
      return { page: 'query' }
  }
}

const heads: Record<By, string> = { prefixes: 'Prefix', buckets: 'Bucket', names: 'Tag', values: 'Value' }

function Elements({ top, busy, state, go }: { top: Top; busy: boolean; state: State; go: Go }) {
  if (top.list.length === 0) {
    return <p class="hint">{top.by === 'names' || top.by === 'values' ? 'No series has tags. ddb admin tags import and POST /tags give them.' : 'There is no series here.'}</p>
  }
  const most = Math.max(...top.list.map((e) => (state.sort === 'new' ? e.new : e.series)), 1)
  const since = `since ${moment(Math.floor(top.new_since / 1000) * 1000, state.utc)}${state.utc ? ' UTC' : ''}`
  return (
    <section class="answer" aria-busy={busy}>
      <p class="note" role="status">
        {count(top.list.length)} of {count(top.distinct)} {top.by} · {count(top.series)} series · {top.new_at_least && 'at least '}{count(top.new)} of them new {since}
      </p>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>{heads[top.by]}</th>
              {top.by === 'prefixes' && !state.bucket && <th>Bucket</th>}
              {top.by === 'values' && !state.name && <th>Tag</th>}
              {top.by === 'names' && <th title="How many different values it has">Values</th>}
              <th><span class="hidden">Bar</span></th><th>Series</th><th title="Of all series that were counted">Share</th>
              <th title={`Series that came ${since}`}>New</th><th title={`New series ${since}, by the hour`}>New per hour</th>
            </tr>
          </thead>
          <tbody>
            {top.list.map((e) => (
              <tr key={`${e.bucket} ${e.name} ${e.text}`}>
                <td><Open by={top.by} element={e} state={state} go={go} /></td>
                {top.by === 'prefixes' && !state.bucket && <td>{e.bucket}</td>}
                {top.by === 'values' && !state.name && <td>{tagText(e.name!)}</td>}
                {top.by === 'names' && <td>{count(e.values ?? 0)}</td>}
                <td class="size"><Bar of={state.sort === 'new' ? e.new : e.series} recent={e.new} most={most} /></td>
                <td>{count(e.series)}</td>
                <td>{percent(e.series / Math.max(1, top.series))}</td>
                <td>{count(e.new)}</td>
                <td>{si(e.new / top.new_hours)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

/** The share of the largest; what is new of it is darker. */
function Bar({ of, recent, most }: { of: number; recent: number; most: number }) {
  return (
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="all" width={(100 * of) / most} height="6" />
      <rect class="new" width={(100 * recent) / most} height="6" />
    </svg>
  )
}

function Open({ by, element: e, state, go }: { by: By; element: Element; state: State; go: Go }) {
  const shown = by === 'names' ? tagText(e.text) : by === 'prefixes' && state.prefix ? e.text.slice(state.prefix.length + 1) || e.text : e.text
  const change = { ...below(by, e), utc: state.utc, sort: state.sort }
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey) return
    event.preventDefault()
    if (by === 'values') void valueQuery(e).then((query) => go({ page: 'query', query, hide: [] }))
    else go(change)
  }
  return <a href={by === 'values' ? './' : link(change)} onClick={open}><code>{shown || <i>empty</i>}</code>{e.deeper ? ' …' : ''}</a>
}

/** How many collections are looked at for a value: each is asked for by itself. */
const mostCollections = 50

/** A query of the series that have a value, in the collection that has most of them, of the largest ones. */
async function valueQuery(e: Element): Promise<string> {
  const where = `${tagText(e.name!)} = ${quoted(e.text)}`
  const counts = await Promise.all((await largestCollections(mostCollections)).map(async (collection) => ({ collection, series: await matching(collection, where) })))
  const best = counts.reduce((a, b) => (b.series > a.series ? b : a))
  return `SELECT ALL FROM ${quoted(best.collection)} WHERE ${where} LAST 1h`
}
