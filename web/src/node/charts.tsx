import { useState } from 'preact/hooks'
import { api, runQuery, type Result } from '../api'
import { useLoad } from '../hooks'
import { Chart } from '../query/chart'
import { chartData, pointsOf, type ChartData } from '../query/data'
import { Swatch } from '../query/legend'
import { link } from '../url'

const self = 'dalmatinerdb'

// A query that finds nothing is refused, and counted as one: these are asked as the original answered, and have no star.
const rate = (node: string) => `SELECT '${node}'.mps BUCKET ${self} AS 'points per second' LAST 10m`

const operations: [string, string][] = [
  ['mput', 'Stream to log'], ['mstore.read', 'Read for a query'], ['mstore.write', 'Flush'], ['get', 'GET'],
]
const figures = ['p50', 'p95', 'p99', 'max']

function latency(node: string, op: string): string {
  return `SELECT ${figures.map((f) => `'${node}'.${op}.${f} BUCKET ${self} AS ${f} METADATA {unit: 's'}`).join(', ')} LAST 10m`
}

const none: ChartData = { x: [], lines: [], reduced: false, older: false, events: [], start: 0, end: 0 }
const nothing = new Set<number>()

/** What the node writes about itself, from its own bucket. */
export function OwnCharts({ node, utc, theme }: { node: string; utc: boolean; theme: string }) {
  const [op, setOp] = useState('mput')
  return (
    <div class="columns even">
      <StoreChart title="Points stored" bucket={self} query={rate(node)} utc={utc} theme={theme} />
      <StoreChart title="Latency" bucket={self} query={latency(node, op)} utc={utc} theme={theme} scale={1e-6}>
        <span class="segments">
          {operations.map(([name, title]) => <button key={name} aria-pressed={op === name} onClick={() => setOp(name)}>{title}</button>)}
        </span>
      </StoreChart>
    </div>
  )
}

interface Props {
  title: string
  bucket: string // that may not be there
  query: string
  utc: boolean
  theme: string
  scale?: number
  none?: string // what to say where there are no points
  children?: preact.ComponentChildren
}

/** A chart of a query of series that always are there, or whose bucket is not. */
export function StoreChart({ title, bucket, query, utc, theme, scale = 1, none: empty, children }: Props) {
  const { value } = useLoad(async (signal): Promise<ChartData> => {
    const kept = (await api.buckets(signal)).some((b) => b.name === bucket)
    return kept ? chartData(scaled((await runQuery(query, { signal, width: 600, compat: true })).value, scale)) : none
  }, [query], 2000)
  return (
    <section class="card">
      <div class="head">
        <h2>{title}</h2>
        {children}
        <span class="spring" />
        <span class="keys">{value?.lines.map((l) => <span key={l.index}><Swatch color={l.color} /> {l.name.replaceAll("'", '')}</span>)}</span>
        <a href={link({ query, live: true })}>Query</a>
      </div>
      {value && pointsOf(value) > 0
        ? <Chart data={value} hidden={nothing} utc={utc} theme={theme} height={220} label={title} />
        : <p class="blank note">{value ? (empty ?? 'Nothing of the kind happened in the last ten minutes.') : 'Loading …'}</p>}
    </section>
  )
}

/** The node writes microseconds; the axis knows prefixes of seconds. */
function scaled(result: Result, by: number): Result {
  if (by === 1) return result
  const all = (list?: (number | null)[]) => list?.map((v) => v === null ? null : v * by)
  return { ...result, results: result.results.map((s) => ({ ...s, values: all(s.values)!, min: all(s.min), max: all(s.max) })) }
}
