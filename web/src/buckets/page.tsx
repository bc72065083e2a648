import { useState } from 'preact/hooks'
import { api, type Bucket } from '../api'
import { bytes, count, duration, si } from '../format'
import { useLoad } from '../hooks'
import { Copy, haggar } from '../query/empty'
import { link, type Go, type State } from '../url'
import { Create } from './create'
import { Detail } from './detail'
import { bitsText, figuresOf, segmentsOf, ttlText, type Figures, type InSegments } from './figures'
import { Sparkline } from './sparkline'

const again = 10_000 // ms
const seldom = 60_000

export function BucketsPage({ state, go }: { state: State; go: Go }) {
  const list = useLoad((signal) => api.buckets(signal), [], again)
  const names = (list.value ?? []).map((b) => b.name)
  const figures = useLoad(figuresOf, [names.join('\n')], again)
  const wanted = state.bucket ? [state.bucket] : names
  const onDisk = useLoad((signal) => segmentsOf(wanted, signal), [wanted.join('\n')], seldom)
  const status = useLoad((signal) => api.status(signal), [])
  const [creating, setCreating] = useState(false)
  if (list.error) return <p class="problem" role="alert">{list.error}</p>
  if (!list.value) return <p class="note">Loading …</p>
  const chosen = list.value.find((b) => b.name === state.bucket)
  if (state.bucket && chosen) {
    return <Detail bucket={chosen} figures={figures.value?.get(chosen.name)} onDisk={onDisk.value?.get(chosen.name)} state={state} go={go} onChange={list.reload} />
  }
  return (
    <div class="page">
      <div class="head">
        <h1>Buckets</h1>
        <input type="search" placeholder="Search" aria-label="Search buckets" value={state.search} onInput={(e) => go({ search: e.currentTarget.value }, true)} />
        <span class="spring" />
        <button class="main" aria-expanded={creating} onClick={() => setCreating(!creating)}>Create a bucket</button>
      </div>
      {state.bucket && <p class="hint">There is no bucket {state.bucket}. It may have been deleted.</p>}
      {creating && <Create taken={list.value.map((b) => b.name)} onDone={() => { setCreating(false); list.reload() }} onCancel={() => setCreating(false)} />}
      <Table list={list.value.filter((b) => b.name.toLowerCase().includes(state.search.toLowerCase()))} figures={figures.value} onDisk={onDisk.value} go={go} />
      {list.value.every((b) => b.name === 'dalmatinerdb') && (
        <section class="empty">
          <h2>No bucket holds data of yours yet</h2>
          <p>Create one, or let the first stream do it. This line loads the node with 2000 series, one point a second each, into bucket haggar:</p>
          {status.value && <Copy text={haggar(status.value.tcp_addr)} />}
        </section>
      )}
    </div>
  )
}

function Table({ list, figures, onDisk, go }: { list: Bucket[]; figures?: Map<string, Figures>; onDisk?: Map<string, InSegments>; go: Go }) {
  const open = (e: MouseEvent, name: string) => {
    if (e.ctrlKey || e.metaKey) return
    e.preventDefault()
    go({ bucket: name, search: '' })
  }
  return (
    <div class="card scroll">
      <table class="buckets">
        <thead>
          <tr>
            <th>Bucket</th><th>Resolution</th><th title="The time that a file of the original would hold; clients cut their reads there">Points per file</th>
            <th title="How late events may come">Grace</th><th title="How long points are kept">TTL</th><th>Series</th>
            <th title="Stored since the data directory was made">Points</th><th title="In segments on disk">Bytes</th>
            <th title="Bytes in segments ÷ points in them">Bits per point</th><th title="Stored, by minute, the last hour">Points/s</th>
          </tr>
        </thead>
        <tbody>
          {list.map((b) => {
            const f = figures?.get(b.name)
            const d = onDisk?.get(b.name)
            return (
              <tr key={b.name}>
                <td><a href={link({ page: 'buckets', bucket: b.name })} onClick={(e) => open(e, b.name)}>{b.name}</a>{b.hpts && <span class="tag" title="High precision timestamps">hpts</span>}</td>
                <td>{duration(b.resolution)}</td>
                <td>{duration(b.ppf * b.resolution)}</td>
                <td>{b.grace ? duration(b.grace / 1e6) : '0'}</td>
                <td>{ttlText(b)}</td>
                <td>{f ? count(f.series) : '…'}</td>
                <td>{f ? si(f.points) : '…'}</td>
                <td>{d ? bytes(d.bytes) : '…'}</td>
                <td>{d ? bitsText(d) : '…'}</td>
                <td class="rate">{f && <><Sparkline values={f.minutes} /> {si(f.rate)}</>}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {list.length === 0 && <p class="note">No bucket is called that.</p>}
    </div>
  )
}
