import { api, type Target } from '../api'
import { quoted } from '../dql/tokens'
import { count, duration } from '../format'
import { useLoad } from '../hooks'
import { link, type Go, type State } from '../url'

const again = 5_000 // ms

/** What the node scrapes, by job, and what became of the last scrape of each target. */
export function TargetsPage({ state, go, bucket }: { state: State; go: Go; bucket: string }) {
  const { value, error } = useLoad(api.targets, [], again)
  if (error) return <p class="problem" role="alert">{error}</p>
  if (!value) return <p class="note">Loading …</p>
  const found = value.filter((t) => words(t).includes(state.search.toLowerCase()))
  const down = value.filter((t) => t.health === 'down').length
  return (
    <div class="page targets">
      <div class="head">
        <h1>Targets</h1>
        <input type="search" placeholder="Search, also for up and down" aria-label="Search targets" value={state.search} onInput={(e) => go({ search: e.currentTarget.value }, true)} />
        <span class="note" role="status">{count(found.length)} of {count(value.length)}{down > 0 && <>, <button class="link" onClick={() => go({ search: 'down' }, true)}>{count(down)} down</button></>}</span>
      </div>
      {byJob(found).map(([job, list]) => (
        <section key={job} class="card scroll" aria-label={job}>
          <h2>{job}</h2>
          <table>
            <thead><tr><th>Target</th><th class="text">State</th><th class="text">Labels</th><th>Scraped</th><th>Took</th><th>Every</th></tr></thead>
            <tbody>{list.map((t) => <Row key={t.scrapeUrl + JSON.stringify(t.labels)} t={t} bucket={bucket} />)}</tbody>
          </table>
        </section>
      ))}
      {found.length === 0 && value.length > 0 && <p class="hint">No target is like that. <button class="link" onClick={() => go({ search: '' }, true)}>Show all</button></p>}
      {value.length === 0 && <p class="hint">No target is found. The first scrapes begin some seconds after the start; the log says what is wrong with a discovery.</p>}
    </div>
  )
}

function Row({ t, bucket }: { t: Target; bucket: string }) {
  const before = t.health === 'unknown'
  return (
    <>
      <tr>
        <td><a href={link({ query: upOf(t, bucket) })} title="Query its series up">{t.scrapeUrl}</a></td>
        <td class="text"><span class={`pill ${t.health === 'up' ? 'good' : t.health === 'down' ? 'bad' : 'warn'}`}>{before ? 'not yet scraped' : t.health}</span></td>
        <td class="text wrap"><code>{Object.entries(t.labels).map(([name, value]) => `${name}=${value}`).join(' ')}</code></td>
        <td>{before ? '–' : `${duration(Math.max(0, Date.now() - Date.parse(t.lastScrape)))} ago`}</td>
        <td>{before ? '–' : duration(t.lastScrapeDuration * 1000)}</td>
        <td>{t.scrapeInterval}</td>
      </tr>
      {t.lastError && <tr><td class="text wrap bad" colSpan={6} role="alert">{t.lastError}</td></tr>}
    </>
  )
}

/** The targets of each job, in the order of the answer. */
export function byJob(list: Target[]): [string, Target[]][] {
  const jobs = new Map<string, Target[]>()
  for (const t of list) jobs.set(t.scrapePool, [...(jobs.get(t.scrapePool) ?? []), t])
  return [...jobs]
}

/** What a search looks through. */
export function words(t: Target): string {
  return [t.scrapePool, t.scrapeUrl, t.health, t.lastError, ...Object.entries(t.labels).map(([name, value]) => `${name}=${value}`)].join(' ').toLowerCase()
}

/** A query of the series up of a target. */
export function upOf(t: Target, bucket: string): string {
  const escaped = (text: string) => quoted(text.replace(/['\\]/g, '\\$&'))
  const labels = Object.entries(t.labels).map(([name, value]) => `${escaped(name)} = ${escaped(value)}`)
  return `SELECT up FROM ${quoted(bucket)} WHERE ${labels.join(' AND ')} LAST 15m`
}
