import { useEffect } from 'preact/hooks'
import { api } from './api'
import { BucketsPage } from './buckets/page'
import { CardinalityPage } from './cardinality/page'
import { DucksPage } from './ducks/page'
import { EventsPage } from './events/page'
import { FunctionsPage } from './functions/page'
import { useConnection, useLoad, useStored } from './hooks'
import { NodePage } from './node/page'
import { QueryPage } from './query/page'
import { RingPage } from './ring/page'
import { TargetsPage } from './targets/page'
import { initial, link, useURL, type Name } from './url'

export type Theme = 'auto' | 'light' | 'dark'

const pages: [Name, string][] = [['query', 'Query'], ['events', 'Events'], ['buckets', 'Buckets'], ['cardinality', 'Cardinality'], ['functions', 'Functions'], ['node', 'Node'], ['targets', 'Targets'], ['ring', 'Ring'], ['ducks', 'Ducks']]
const themes: Theme[] = ['auto', 'light', 'dark']
const themeMark: Record<Theme, string> = { auto: '◐', light: '☀', dark: '☾' }

export function App() {
  const [state, go] = useURL()
  const { up } = useConnection()
  const status = useLoad((signal) => api.status(signal), []).value // what is asked of it changes with a restart only
  const there = (page: Name) =>
    (page !== 'ring' || status?.cluster !== undefined) && (page !== 'ducks' || status?.ducks !== undefined) && (page !== 'targets' || status?.scrapes !== undefined)
  const [theme, setTheme] = useStored<Theme>('theme', 'auto')
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  useEffect(() => {
    const title = pages.find(([name]) => name === state.page)![1]
    document.title = state.page === 'query' && state.query ? `${state.query.slice(0, 60)} · Dalmatiner` : `${title} · Dalmatiner`
  }, [state.page, state.query])
  const next = themes[(themes.indexOf(theme) + 1) % themes.length]!
  const follow = (e: MouseEvent, page: Name) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return // a new tab
    e.preventDefault()
    if (page !== state.page) go({ ...initial, utc: state.utc, page })
  }
  return (
    <>
      <header class="top">
        <a class="brand" href={link({})} onClick={(e) => follow(e, 'query')}>
          <Spots /> <span>Dalmatiner</span>
        </a>
        <nav aria-label="Pages">
          {pages.filter(([page]) => there(page)).map(([page, title]) => (
            <a key={page} href={link({ page })} aria-current={page === state.page ? 'page' : undefined} onClick={(e) => follow(e, page)}>
              {title}
            </a>
          ))}
        </nav>
        <span class="spring" />
        <button class="quiet" title="Times in local time or in UTC" onClick={() => go({ utc: !state.utc }, true)}>
          {state.utc ? 'UTC' : 'Local'}
        </button>
        <button class="quiet icon" title={`Colours: ${theme}. Change to ${next}`} aria-label={`Colours: ${theme}`} onClick={() => setTheme(next)}>
          {themeMark[theme]}
        </button>
      </header>
      {!up && (
        <div class="banner" role="alert">
          <span class="spinner" /> No answer from the node. What you see is from before; it is loaded again as soon as the node answers.
        </div>
      )}
      <main>
        {state.page === 'query' && <QueryPage state={state} go={go} theme={theme} />}
        {state.page === 'events' && <EventsPage state={state} go={go} />}
        {state.page === 'buckets' && <BucketsPage state={state} go={go} />}
        {state.page === 'cardinality' && <CardinalityPage state={state} go={go} />}
        {state.page === 'functions' && <FunctionsPage state={state} go={go} />}
        {state.page === 'node' && <NodePage state={state} theme={theme} />}
        {state.page === 'targets' && <TargetsPage state={state} go={go} bucket={status?.scrapes ?? ''} />}
        {state.page === 'ring' && <RingPage />}
        {state.page === 'ducks' && <DucksPage state={state} go={go} theme={theme} />}
      </main>
    </>
  )
}

function Spots() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <circle cx="9" cy="9" r="4.5" />
      <circle cx="22" cy="8" r="3" />
      <circle cx="16" cy="18.500" r="5.500" />
      <circle cx="26" cy="20" r="3" />
      <circle cx="7.500" cy="25.500" r="3.500" />
      <circle cx="22" cy="28" r="2.300" />
    </svg>
  )
}
