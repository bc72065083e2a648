import { api, type Cluster, type Move, type Transfer } from '../api'
import { Fact } from '../buckets/detail'
import { bytes, count, percent } from '../format'
import { useLoad } from '../hooks'
import { Bar } from '../query/legend'
import { Confirmed } from '../confirm'
import { auditFacts, byPair, progress } from './figures'
import { PlanSection } from './plan'

/** The cluster of the node; a node on its own is asked nothing that it would refuse. */
export function RingPage() {
  const { value, error } = useLoad((signal) => api.status(signal), [])
  if (error) return <p class="problem" role="alert">{error}</p>
  if (!value) return <p class="note">Loading …</p>
  if (value.cluster) return <Ring />
  return (
    <section class="empty">
      <h2>This node is in no cluster</h2>
      <p>Set <code>cluster.listen</code> to found a cluster, and <code>cluster.join</code> to where another node gossips to become part of one.</p>
    </section>
  )
}

function Ring() {
  const { value: c, error, reload } = useLoad((signal) => api.cluster(signal), [], 1000)
  const moves = useLoad((signal) => api.moves(signal), [c?.ring], 2000)
  const transfers = useLoad((signal) => api.transfers(signal), [c?.ring], 1000)
  if (!c) return error ? <p class="problem" role="alert">{error}</p> : <p class="note">Loading …</p>
  const down = c.members.filter((m) => !m.up && !m.maintenance && m.state !== 'removed')
  return (
    <div class="page ring">
      <div class="head">
        <h1>Ring {c.ring}</h1>
        <span class={`pill ${c.agree ? 'good' : 'warn'}`}>{c.agree ? 'all nodes agree' : 'nodes have different rings'}</span>
        {down.length > 0 && <span class="pill warn">{down.length} down</span>}
        {c.changing && <span class="pill warn">a change is under way</span>}
        {c.paused && <span class="pill warn">transfers are paused</span>}
        <span class="spring" />
        <span class="note">seen by {c.node}; {c.ring_size} partitions, n = {c.n}{c.next_n !== c.n && ` (then ${c.next_n})`}, r = {c.r}, w = {c.w}</span>
      </div>
      {error && <p class="problem" role="alert">{error}</p>}
      {c.refused.map((text) => <p key={text} class="hint">{text}</p>)}
      <Members c={c} />
      <div class="columns even">
        <Moves c={c} list={moves.value} error={moves.error} onChange={reload} />
        <Transfers c={c} list={transfers.value} error={transfers.error} onChange={reload} />
      </div>
      <PlanSection c={c} onChange={reload} />
      <AuditSection />
    </div>
  )
}

function Members({ c }: { c: Cluster }) {
  return (
    <section class="card scroll" aria-label="Members">
      <h2>Members</h2>
      <table>
        <thead>
          <tr>
            <th>Member</th><th class="text">State</th><th class="text">Reached</th><th title="Of all copies">Share</th><th title="After the change under way">Share later</th>
            <th>Points on disk</th><th>Free</th><th title="Batches that it keeps for members that were down">Hints</th><th class="text">Zone</th>
          </tr>
        </thead>
        <tbody>
          {c.members.map((m) => (
            <tr key={m.id}>
              <td title={m.addresses.join(', ')}>{m.name}{m.name === c.node && <span class="tag">this node</span>}</td>
              <td class="text">{m.state}</td>
              <td class="text">{m.up ? <span class="pill good">up</span> : <span class="pill warn">{m.maintenance ? 'in maintenance' : 'down'}</span>}</td>
              <td><span class="meter"><Bar share={m.share} /></span> {percent(m.share)}</td>
              <td>{c.changing ? percent(m.future) : '–'}</td>
              <td>{bytes(m.bytes)}</td>
              <td>{bytes(m.free_disk_bytes)}</td>
              <td>{count(m.hints)}</td>
              <td class="text">{m.zone || '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {c.waiting.length > 0 && <p class="note">Not a member: {c.waiting.join(', ')}</p>}
    </section>
  )
}

interface Listed<T> {
  c: Cluster
  list?: T[]
  error?: string
  onChange: () => void
}

function Moves({ c, list, error, onChange }: Listed<Move>) {
  return (
    <section class="card scroll" aria-label="Moves">
      <h2>Partitions that move</h2>
      {error && <p class="problem" role="alert">{error}</p>}
      {c.waits.map((text) => <p key={text} class="note">Waiting: {text}</p>)}
      {list?.length === 0 && <p class="note">No partition gets a new owner.</p>}
      {list && list.length > 0 && (
        <table>
          <thead><tr><th>From</th><th class="text">To</th><th>Partitions</th><th class="text">Their numbers</th></tr></thead>
          <tbody>
            {byPair(list).map((p) => (
              <tr key={`${p.from} ${p.to}`}>
                <td class={p.from ? '' : 'bad'}>{p.from || 'no copy is left'}</td><td class="text">{p.to}</td>
                <td>{count(p.partitions.length)}</td><td class="text wrap">{p.partitions.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {c.changing && (
        <Confirmed label="Undo" word="undo" act={() => api.order('undo')} onDone={onChange}
          what="The change under way is taken back: members that were joining get no share, those that were leaving stay. A member that was removed by force does not come back." />
      )}
    </section>
  )
}

function Transfers({ c, list, error, onChange }: Listed<Transfer>) {
  return (
    <section class="card scroll" aria-label="Transfers">
      <h2>Transfers</h2>
      {error && <p class="problem" role="alert">{error}</p>}
      {list?.length === 0 && <p class="note">Nothing moves between members.</p>}
      {list && list.length > 0 && (
        <table>
          <thead><tr><th>From</th><th class="text">To</th><th class="text">What</th><th>Points</th><th>Progress</th></tr></thead>
          <tbody>
            {list.map((t) => {
              const share = progress(t)
              return (
                <tr key={`${t.from} ${t.to} ${t.partition} ${t.hints}`}>
                  <td>{t.from}</td><td class="text">{t.to}</td><td class="text">{t.hints && 'hints of '}partition {t.partition}</td><td>{count(t.points)}</td>
                  <td>{share === undefined ? bytes(t.bytes) : <><span class="meter"><Bar share={share} /></span> {percent(share)} of {bytes(t.size)}</>}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
      {c.paused
        ? <Confirmed key="resume" label="Resume" what="Transfers go on, on all nodes." act={() => api.order('resume')} onDone={onChange} />
        : <Confirmed key="pause" label="Pause" what="Transfers are held back, on all nodes, until somebody resumes them. A change under way waits as long." act={() => api.order('pause')} onDone={onChange} />}
    </section>
  )
}

function AuditSection() {
  const { value, error } = useLoad((signal) => api.audit(signal), [], 2000)
  return (
    <section class="card" aria-label="Audit">
      <div class="head">
        <h2>Audit</h2>
        <span class="note">how well copies agree, as this node has seen it since it started</span>
      </div>
      {error && <p class="problem" role="alert">{error}</p>}
      {value && <dl class="facts">{auditFacts(value).map(([name, text]) => <Fact key={name} name={name} value={text} />)}</dl>}
    </section>
  )
}
