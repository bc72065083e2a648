import { api, type Fn } from '../api'
import { names } from '../dql/complete'
import { useLoad } from '../hooks'
import { link, type Go, type State } from '../url'

const groups: Record<string, string> = {
  aggregate: 'Over time', combiner: 'From many series', transformation: 'Value by value', histogram: 'Histograms',
}

/** All functions of the registry of the engine, with an example that runs. */
export function FunctionsPage({ state, go }: { state: State; go: Go }) {
  const { value, error } = useLoad(async (signal) => {
    const [list, buckets] = await Promise.all([names.functions(), api.buckets(signal)])
    return { list, example: await realSelector(buckets.map((b) => b.name), signal) }
  }, [])
  if (error) return <p class="problem" role="alert">{error}</p>
  if (!value) return <p class="note">Loading …</p>
  const search = state.search.toLowerCase()
  const found = value.list.filter((f) => `${f.desc} ${f.help}`.toLowerCase().includes(search))
  return (
    <div class="page">
      <div class="head">
        <h1>Functions</h1>
        <input type="search" placeholder="Search" aria-label="Search functions" value={state.search} onInput={(e) => go({ search: e.currentTarget.value }, true)} />
        <span class="note">{found.length} of {value.list.length}</span>
      </div>
      {[...new Set(found.map((f) => f.group))].map((group) => (
        <section key={group}>
          <h2>{groups[group] ?? group}</h2>
          <div class="card scroll">
            <table class="functions">
              <thead><tr><th>Function</th><th>What it gives</th><th>Example</th></tr></thead>
              <tbody>
                {found.filter((f) => f.group === group).map((f) => <Row key={f.desc} f={f} query={runnable(f, value.example)} />)}
              </tbody>
            </table>
          </div>
        </section>
      ))}
      {found.length === 0 && <p class="hint">No function is called that, or does that. <button class="link" onClick={() => go({ search: '' }, true)}>Show all</button></p>}
    </div>
  )
}

function Row({ f, query }: { f: Fn; query: string }) {
  return (
    <tr>
      <td><code class="signature">{f.desc}</code>{f.since !== 'original' && <span class="tag">{f.since}</span>}</td>
      <td>{withCode(f.help)}{f.note && <div class="note">With compat=1: {withCode(f.note)}</div>}</td>
      <td><a class="run" href={link({ query })} title={query}>Run</a> <code class="example">{f.example}</code></td>
    </tr>
  )
}

/** Text with words between backticks. */
function withCode(text: string) {
  return text.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))
}

/** A series that is really there: one of the loads, else one of the node itself. */
async function realSelector(buckets: string[], signal: AbortSignal): Promise<Record<'one' | 'many', string>> {
  const self = { one: '*.mps BUCKET dalmatinerdb', many: '*.account.*.accepted BUCKET dalmatinerdb' }
  const bucket = buckets.find((b) => b !== 'dalmatinerdb')
  if (!bucket) return self
  const found = await api.metrics(bucket, '', 3, signal).catch(() => [])
  if (!found.length) return self
  const of = (metric: string) => `${metric} BUCKET '${bucket}'`
  return { one: of(found[0]!), many: found.map(of).join(', ') }
}

/** The example of a function over a series of this node: those of the registry read a bucket of the manual. */
export function runnable(f: Fn, real: Record<'one' | 'many', string>): string {
  const selector = /(?:[\w*]+\.)*[\w*]+ BUCKET shop/g
  const many = f.signature.some((s) => s.startsWith('metric*') || s.includes('*'))
  let first = true
  const expression = f.example.replace(selector, () => {
    const text = many && first ? real.many : real.one
    first = false
    return text
  })
  return `SELECT ${expression} LAST 5m`
}
