import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { findRange, withRange } from '../dql/range'
import { EventTable } from '../events/table'
import { count, duration, percent } from '../format'
import type { Go, State, View } from '../url'
import { TagBrowser } from '../tags/browser'
import { Chart } from './chart'
import { Editor } from './editor'
import { Empty } from './empty'
import { download } from './export'
import { Hints } from './hints'
import { Legend, Swatch } from './legend'
import { Library, remember } from './library'
import { PlanTree } from './plan'
import { Ranges } from './ranges'
import { useRun, type Answer } from './run'
import { RunButton } from './running'
import { ValueTable } from './table'

const views: [View, string][] = [['chart', 'Chart'], ['table', 'Table'], ['plan', 'Explain']]

export function QueryPage({ state, go, theme }: { state: State; go: Go; theme: string }) {
  const [text, setText] = useState(state.query) // of the editor
  const [given, setGiven] = useState({ text: state.query })
  const [turn, setTurn] = useState(0)
  const [browsing, setBrowsing] = useState(false)
  const [drawn, setDrawn] = useState<number>()
  const box = useRef<HTMLDivElement>(null)
  const hidden = useMemo(() => new Set(state.hide), [state.hide.join()])
  const width = Math.max(200, Math.min(4000, box.current?.clientWidth ?? innerWidth))
  const run = useRun({ query: state.query, turn, view: state.view, every: state.every, older: state.older, live: state.live, width })
  const put = (query: string) => {
    setText(query)
    setGiven({ text: query })
  }
  const first = useRef(true)
  useEffect(() => {
    // The editor begins with the first one, and somebody may be typing already.
    if (!first.current) put(state.query)
    first.current = false
  }, [state.query])
  useEffect(() => {
    if (state.query.trim()) remember(state.query)
  }, [state.query])

  // A query needs a range; one without gets the last hour, in plain sight.
  const start = (query: string) => {
    const whole = query.trim() && !findRange(query) && /^\s*(EXPLAIN\s+)?SELECT\b/i.test(query) ? withRange(query, { kind: 'last', span: 3_600_000 }) : query
    put(whole)
    if (whole === state.query) setTurn((n) => n + 1)
    else go({ query: whole, hide: [] })
  }
  // Another range of the same series keeps what is hidden.
  const setRange = (query: string) => {
    put(query)
    if (query.trim()) go({ query, live: state.live && findRange(query)?.range.kind === 'last' })
  }
  const zoom = (from: number, to: number) => setRange(withRange(state.query, { kind: 'between', from, to: Math.max(to, from + 1) }))
  const answer = run.answer
  const shown = answer?.data.lines.length ? { from: answer.data.start, to: answer.data.end } : undefined

  return (
    <div class="query" ref={box}>
      <section class="ask">
        <Editor given={given} mistake={run.mistake} onChange={setText} onRun={() => start(text)} />
        <div class="actions">
          <RunButton run={run} onRun={() => start(text)} />
          <button aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>Tags</button>
          <Library query={text} utc={state.utc} onOpen={start} />
        </div>
      </section>
      {browsing && <TagBrowser onInsert={start} />}
      <div class="tools">
        <Ranges query={text} shown={shown} utc={state.utc} onRange={setRange} />
        <button class="toggle" aria-pressed={state.live} disabled={!state.query || findRange(state.query)?.range.kind !== 'last'}
          title="Ask again every second; needs a range that begins with LAST" onClick={() => go({ live: !state.live }, true)}>
          <span class="dot" /> Live
        </button>
        <button class="toggle" aria-pressed={state.every} title="Every value rather than one column per pixel" onClick={() => go({ every: !state.every }, true)}>
          Every point
        </button>
        <button title="The view before (the browser's back button does the same)" onClick={() => history.back()}>Back</button>
      </div>
      {run.error && <pre class="problem" role="alert">{run.error}</pre>}
      {state.query
        ? <AnswerView {...{ answer, state, go, theme, hidden, zoom, drawn, setDrawn }} busy={run.busy} />
        : <Empty onTry={start} />}
    </div>
  )
}

interface AnswerProps {
  answer?: Answer
  busy: boolean
  state: State
  go: Go
  theme: string
  hidden: ReadonlySet<number>
  zoom: (from: number, to: number) => void
  drawn?: number
  setDrawn: (ms: number) => void
}

function AnswerView({ answer, busy, state, go, theme, hidden, zoom, drawn, setDrawn }: AnswerProps) {
  return (
    <section class="answer" aria-busy={busy}>
      <div class="bar">
        <span class="segments" role="tablist">
          {views.map(([view, title]) => (
            <button key={view} role="tab" aria-selected={state.view === view} onClick={() => go({ view })}>{title}</button>
          ))}
        </span>
        <span class="timing" role="status">{answer ? timing(answer, drawn, state.view) : busy ? 'asking …' : ''}</span>
        <span class="spring" />
        {answer && state.view !== 'plan' && <Exports query={state.query} older={state.older} />}
      </div>
      {answer && <AnswerBody {...{ answer, state, go, theme, hidden, zoom, setDrawn }} />}
    </section>
  )
}

function AnswerBody({ answer, state, go, theme, hidden, zoom, setDrawn }: Omit<AnswerProps, 'busy' | 'answer' | 'drawn'> & { answer: Answer }) {
  const { data, plan } = answer
  if (plan) return <PlanTree plan={plan} />
  if (state.view === 'plan') return <p class="note">No plan.</p>
  const hints = <Hints answer={answer} utc={state.utc} onOlder={(older) => go({ older })} />
  const events = data.events.map((e) => (
    <section class="events" key={e.color} aria-label={e.name}>
      <h3><Swatch color={e.color} /> {e.name} <span class="note">{count(e.list.length)} {e.list.length === 1 ? 'event' : 'events'}</span></h3>
      {e.list.length > 0 && <EventTable list={e.list} utc={state.utc} />}
    </section>
  ))
  if (data.lines.length === 0 && events.length > 0) return <>{hints}{events}</>
  if (state.view === 'table') return <>{hints}<ValueTable data={data} hidden={hidden} utc={state.utc} />{events}</>
  return (
    <>
      {hints}
      <Chart data={data} hidden={hidden} utc={state.utc} theme={theme} height={innerWidth < 700 ? 260 : 380} onZoom={zoom} onDrawn={setDrawn}
        label={`Chart of ${data.lines.length} series`} />
      <Legend lines={data.lines} hidden={hidden} older={data.older} utc={state.utc} onHide={(hide) => go({ hide }, true)} />
      {events}
    </>
  )
}

function timing(a: Answer, drawn: number | undefined, view: View): string {
  const lines = a.data.lines
  const parts = []
  if (lines.length) {
    const coverage = lines.reduce((sum, l) => sum + l.coverage, 0) / lines.length
    parts.push(`${count(lines.length)} series`, `${count(a.points)} ${a.data.reduced ? `columns of ${duration(lines[0]!.resolution)}` : 'points'}`, `coverage ${percent(coverage)}`)
  }
  const events = a.data.events.reduce((n, e) => n + e.list.length, 0)
  if (a.data.events.length) parts.push(`${count(events)} ${events === 1 ? 'event' : 'events'}`)
  parts.push(`query ${duration(a.queryMs)}`, `round trip ${duration(a.tookMs)}`)
  if (view === 'chart' && lines.length && drawn !== undefined) parts.push(`draw ${duration(drawn)}`)
  return parts.join(' · ')
}

function Exports({ query, older }: { query: string; older: boolean }) {
  const [error, setError] = useState('')
  const get = (form: 'csv' | 'json') => {
    setError('')
    download(query, form, older).catch((e: Error) => setError(e.message))
  }
  return (
    <span class="exports">
      {error && <span class="bad">{error}</span>}
      <button title={`Every value as comma separated values${older ? ', without older ones' : ''}`} onClick={() => get('csv')}>CSV</button>
      <button title="The whole answer of the node" onClick={() => get('json')}>JSON</button>
      <CopyLink />
    </span>
  )
}

function CopyLink() {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard?.writeText(location.href)
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return <button title="A link to this view" onClick={copy}>{done ? 'Copied' : 'Link'}</button>
}
