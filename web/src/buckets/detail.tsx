import { useState } from 'preact/hooks'
import { api, type Bucket } from '../api'
import { spanText } from '../dql/range'
import { bytes, count, duration, si } from '../format'
import { link, type Go, type State } from '../url'
import { pointsIn } from './create'
import { bitsText, ttlText, type Figures, type InSegments } from './figures'
import { Sparkline } from './sparkline'
import { Metrics } from './tree'

interface Props {
  bucket: Bucket
  figures?: Figures
  onDisk?: InSegments
  state: State
  go: Go
  onChange: () => void
}

/** One bucket: its properties, what can be done to it, and its metrics. */
export function Detail({ bucket, figures: f, onDisk: d, state, go, onChange }: Props) {
  const total = f?.total
  return (
    <div class="page">
      <div class="head">
        <h1><a href={link({ page: 'buckets' })} onClick={(e) => { e.preventDefault(); go({ bucket: '', search: '' }) }}>Buckets</a> / {bucket.name}</h1>
        <span class="spring" />
        {f && <span class="rate"><Sparkline values={f.minutes} width={160} height={28} /> {si(f.rate)} points/s</span>}
      </div>
      <dl class="facts card">
        <Fact name="Resolution" value={duration(bucket.resolution)} />
        <Fact name="Points per file" value={`${count(bucket.ppf)} (${duration(bucket.ppf * bucket.resolution)})`} />
        <Fact name="Grace" value={bucket.grace ? duration(bucket.grace / 1e6) : '0'} />
        <Fact name="TTL" value={ttlText(bucket)} />
        <Fact name="Timestamps" value={bucket.hpts ? 'nanoseconds of every point' : 'those of the slots'} />
        {f && <Fact name="Series" value={count(f.series)} />}
        {f && <Fact name="Points" value={count(f.points)} />}
        {d && <Fact name="In segments" value={bytes(d.bytes)} />}
        {d && <Fact name="Bits per point" value={bitsText(d)} />}
        {total && Object.entries(total.refused).map(([reason, n]) => <Fact key={reason} name={`Refused: ${reason}`} value={count(n)} />)}
      </dl>
      <div class="columns">
        <Metrics bucket={bucket.name} search={state.search} onSearch={(search) => go({ search }, true)} />
        <div>
          <Lifetime key={`${bucket.name} ${bucket.ttl}`} bucket={bucket} onChange={onChange} />
          <Delete key={bucket.name} bucket={bucket} series={f?.series} onDeleted={() => { onChange(); go({ bucket: '', search: '' }, true) }} />
        </div>
      </div>
    </div>
  )
}

export function Fact({ name, value, bad }: { name: string; value: string; bad?: boolean }) {
  return <div><dt>{name}</dt><dd class={bad ? 'bad' : ''}>{value}</dd></div>
}

function Lifetime({ bucket, onChange }: { bucket: Bucket; onChange: () => void }) {
  const now = bucket.ttl === 'infinity' ? '' : spanText(bucket.ttl * bucket.resolution)
  const [text, setText] = useState(now)
  const [error, setError] = useState('')
  const points = pointsIn(text, bucket.resolution)
  const good = !text.trim() || points !== undefined
  const submit = (e: Event) => {
    e.preventDefault()
    setError('')
    api.setTTL(bucket.name, text.trim() ? points! : 'infinity').then(onChange, (e: Error) => setError(e.message))
  }
  return (
    <form class="card" onSubmit={submit} aria-label="Lifetime">
      <h2>Lifetime</h2>
      <p class="note">Points older than this are hidden at once and removed from the disk later. Empty keeps them forever.</p>
      <div class="row">
        <input aria-label="TTL" value={text} placeholder="forever" size={10} onInput={(e) => setText(e.currentTarget.value)} />
        <button disabled={!good || text.trim() === now}>Set</button>
      </div>
      {!good && <p class="bad">A span such as 30d, at least as long as the resolution.</p>}
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}

function Delete({ bucket, series, onDeleted }: { bucket: Bucket; series?: number; onDeleted: () => void }) {
  const [typed, setTyped] = useState('')
  const [error, setError] = useState('')
  const submit = (e: Event) => {
    e.preventDefault()
    if (typed !== bucket.name) return
    api.deleteBucket(bucket.name).then(onDeleted, (e: Error) => setError(e.message))
  }
  return (
    <form class="card" onSubmit={submit} aria-label="Delete the bucket">
      <h2>Delete</h2>
      <p class="note">
        All points of {series === undefined ? 'the bucket' : `its ${count(series)} series`} are gone for good; only a snapshot has them still. Type <b>{bucket.name}</b> to say that you mean it.
      </p>
      <div class="row">
        <input aria-label="Name of the bucket to delete" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        <button class="danger" disabled={typed !== bucket.name}>Delete</button>
      </div>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}
