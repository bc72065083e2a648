import { api, byLabel, type Cache, type Stat, type Status } from '../api'
import { bytes, count, duration, si } from '../format'
import { useLoad } from '../hooks'
import { reached } from '../query/empty'
import { Bar } from '../query/legend'
import type { State } from '../url'
import { AccountSection } from './account'
import { OwnCharts } from './charts'
import { Fact } from '../buckets/detail'
import { LogSection } from './log'

type Stats = Map<string, Stat>

const figure = (m: Stats, name: string) => m.get(name)?.value ?? 0

/** The state of the node, again every second or two. */
export function NodePage({ state, theme }: { state: State; theme: string }) {
  const status = useLoad((signal) => api.status(signal), [], 1000)
  const stats = useLoad(async (signal): Promise<Stats> => new Map((await api.stats(signal)).map((s) => [s.name, s])), [], 2000)
  if (status.error) return <p class="problem" role="alert">{status.error}</p>
  const [s, m] = [status.value, stats.value]
  if (!s || !m) return <p class="note">Loading …</p>
  return (
    <div class="page node">
      <div class="head">
        <h1>{s.node}</h1>
        <span class={`pill ${s.ready ? 'good' : 'warn'}`}>{s.ready ? 'ready' : 'starting or stopping'}</span>
        {s.disk_full && <span class="pill warn">disk full: points are refused</span>}
        {s.memory_level !== 'calm' && <span class="pill warn">memory: {levels[s.memory_level] ?? s.memory_level}</span>}
        {s.damage > 0 && <span class="pill warn">{count(s.damage)} damaged places</span>}
        <span class="spring" />
        <span class="note">version {s.version}, up for {duration(s.uptime_s * 1000)}, data in {s.data_dir}</span>
      </div>
      <Tiles s={s} m={m} />
      <OwnCharts node={s.node} utc={state.utc} theme={theme} />
      <AccountSection utc={state.utc} />
      <div class="columns even">
        <Memory s={s} />
        <Disk s={s} m={m} />
      </div>
      <Damage s={s} m={m} />
      <LogSection utc={state.utc} />
    </div>
  )
}

const levels: Record<string, string> = {
  urgent: 'merging and flushing are urgent', no_queries: 'large queries are refused', no_series: 'new series are refused', hold: 'senders are held back',
}

function Tiles({ s, m }: { s: Status; m: Stats }) {
  const limit = s.memory_limit_bytes
  return (
    <div class="tiles">
      <Tile name="Points in" value={`${si(s.points_in_per_s)}/s`} note={s.senders_held ? `${count(s.senders_held)} senders held back` : 'stored in the last second'} />
      <Tile name="Slots read" value={`${si(s.points_out_per_s)}/s`} note={`${count(figure(m, 'http_queries_running'))} queries run now`} />
      <Tile name="Series" value={count(s.series)} note={`in ${count(s.buckets)} buckets`} />
      <Tile name="Points on disk" value={si(s.segment_points)} note={s.segment_points ? `${((s.segment_bytes * 8) / s.segment_points).toFixed(2)} bits a point, with index` : 'none yet'} />
      <Tile name="Memory" value={bytes(s.memory_used_bytes)} note={limit ? `of ${bytes(limit)}` : 'no limit'} share={limit ? s.memory_used_bytes / limit : undefined} />
      <Tile name="Log" value={bytes(s.wal_bytes)} note={`sync: ${s.wal_sync}`} />
    </div>
  )
}

function Tile({ name, value, note, share }: { name: string; value: string; note: string; share?: number }) {
  return (
    <div class="tile card">
      <span class="note">{name}</span>
      <b>{value}</b>
      <span class="note">{note}</span>
      {share !== undefined && <span class={`meter wide ${share > 0.8 ? 'high' : ''}`}><Bar share={share} /></span>}
    </div>
  )
}

/** What a pool holds, or may: most in bytes. */
export function amount(pool: Cache, n: number): string {
  return pool.unit ? `${count(n)} ${pool.unit}` : bytes(n)
}

function Memory({ s }: { s: Status }) {
  const { value } = useLoad((signal) => api.caches(signal), [], 3000)
  const inBytes = (value ?? []).filter((p) => !p.unit).sort((a, b) => b.bytes - a.bytes)
  const most = Math.max(1, ...inBytes.map((p) => p.bytes))
  const pools = [...inBytes, ...(value ?? []).filter((p) => p.unit)]
  return (
    <section class="card scroll">
      <h2>Memory</h2>
      <p class="note">
        {bytes(s.memory_used_bytes)} counted{s.memory_limit_bytes > 0 && ` of memory.limit ${bytes(s.memory_limit_bytes)}`}; the process has {bytes(s.rss_bytes)}, of it {bytes(s.heap_bytes)} on the Go heap
      </p>
      <table>
        <thead><tr><th>Pool</th><th>In use</th><th>Limit</th></tr></thead>
        <tbody>
          {pools.map((p) => (
            <tr key={p.name} title={p.holds}>
              <td class="wrap">{p.name}<small class="note"> {p.holds}</small></td>
              <td><span class="meter"><Bar share={p.bytes / (p.limit || most)} /></span> {amount(p, p.bytes)}</td>
              <td>{p.limit ? amount(p, p.limit) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Disk({ s, m }: { s: Status; m: Stats }) {
  const v = (name: string) => figure(m, name)
  const mean = (total: string, n: string) => (v(n) ? duration((v(total) / v(n)) * 1000) : '–')
  return (
    <section class="card">
      <h2>Log, flushes, merges</h2>
      <dl class="facts">
        <Fact name="Log that a restart would replay" value={`${bytes(s.wal_bytes)} in ${count(v('wal_files'))} files`} />
        <Fact name="Log a power failure would take" value={bytes(s.wal_unsynced_bytes)} />
        <Fact name="Syncs" value={`${count(v('wal_syncs_total'))}, ${mean('wal_sync_seconds_total', 'wal_syncs_total')} each, longest ${duration(v('wal_sync_max_seconds') * 1000)}`} />
        <Fact name="Appends that found the buffer full" value={count(v('wal_stalls_total'))} />
        <Fact name="In memory, not in a segment" value={bytes(s.head_bytes)} />
        <Fact name="Blocks to encode" value={count(v('seal_queue'))} />
        <Fact name="Flushes" value={`${count(s.flushes)}, ${mean('flush_seconds_total', 'flushes_total')} each`} />
        <Fact name="Last flush" value={s.flushes ? `${duration(Math.max(0, s.since_flush_s) * 1000)} ago` : 'none since the start'} />
        <Fact name="Rounds of merging" value={`${count(v('merges_total'))}, ${bytes(v('merged_bytes_total'))} written`} />
        <Fact name="Segments" value={`${count(s.segments)}, ${bytes(s.segment_bytes)}`} />
        <Fact name="Free on the disk" value={bytes(s.free_disk_bytes)} bad={s.disk_full} />
        <Fact name="Times a sender was held back" value={count(v('sender_waits_total'))} />
      </dl>
    </section>
  )
}

function Damage({ s, m }: { s: Status; m: Stats }) {
  const lost = byLabel(m.values(), 'points_lost_total')
  const recovered = byLabel(m.values(), 'points_recovered_total')
  const refused = byLabel(m.values(), 'requests_refused_total')
  return (
    <section class="card">
      <h2>Damage and refusals</h2>
      {s.damage === 0 && lost.length === 0
        ? <p><span class="pill good">none</span> No damage was found since the start. <code>ddb admin check --addr {reached(s.http_addr)}</code> reads everything and says for sure.</p>
        : <p class="bad">{count(s.damage)} damaged places were found since the start. They are not served; the log below names each, and <code>ddb admin check --addr {reached(s.http_addr)}</code> lists all.</p>}
      <dl class="facts">
        {lost.map(([cause, n]) => <Fact key={cause} name={`Points lost: ${cause}`} value={count(n)} bad />)}
        {recovered.filter(([, n]) => n > 0).map(([cause, n]) => <Fact key={cause} name={`Points recovered: ${cause}`} value={count(n)} />)}
        {refused.map(([reason, n]) => <Fact key={reason} name={`Requests refused: ${reason}`} value={count(n)} />)}
      </dl>
    </section>
  )
}
