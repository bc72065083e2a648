import { useState } from 'preact/hooks'
import { api, type Cluster, type Staging } from '../api'
import { Fact } from '../buckets/detail'
import { bytes, count } from '../format'
import { useLoad } from '../hooks'
import { Confirmed } from '../confirm'
import { body } from './figures'

/** The staged changes, what their commit would do, and the way to it. */
export function PlanSection({ c, onChange }: { c: Cluster; onChange: () => void }) {
  const { value: p, error, reload } = useLoad((signal) => api.plan(signal), [c.ring, c.staged.join('\n')], 5000)
  const done = () => {
    reload()
    onChange()
  }
  return (
    <section class="card" aria-label="Plan">
      <div class="head">
        <h2>Plan</h2>
        <span class="note">what a commit of the staged changes would do; nothing changes before it</span>
      </div>
      {error && <p class="problem" role="alert">{error}</p>}
      {!c.staged.length && <p class="note">No change is staged.</p>}
      {c.staged.length > 0 && p && !error && (
        <>
          {p.warnings.map((w) => <p key={w} class="hint">{w}</p>)}
          <dl class="facts">
            <Fact name="Staged" value={p.changes.join(', ')} />
            <Fact name="Partitions that move" value={count(p.moves)} />
            <Fact name="Bytes that move" value={bytes(p.bytes)} />
          </dl>
          <pre class="plan">{p.text}</pre>
        </>
      )}
      {c.staged.length > 0 && (
        <div class="row">
          {p && !error && (
            <Confirmed key={`${p.ring} ${p.staged}`} label="Commit" word="commit" act={() => api.commit(p)} onDone={done}
              what="The staged changes become the ring of all nodes, and partitions move. The commit is refused if the ring or the plan is another by then." />
          )}
          <Confirmed label="Clear" what="The staged changes are dropped, on all nodes. The ring stays as it is." act={() => api.order('clear')} onDone={done} />
        </div>
      )}
      <Stage c={c} onDone={done} />
    </section>
  )
}

const ways: [Staging, string][] = [
  ['join', 'A node joins'], ['leave', 'A member leaves'], ['replace', 'A node replaces a member'], ['force-remove', 'A member is gone for good'], ['set-n', 'Another number of copies'],
]

function Stage({ c, onDone }: { c: Cluster; onDone: () => void }) {
  const [what, setWhat] = useState<Staging>('join')
  const [node, setNode] = useState('')
  const [next, setNext] = useState('')
  const [n, setN] = useState('')
  const [error, setError] = useState('')
  const members = c.members.filter((m) => m.state !== 'removed').map((m) => m.name)
  const asked = body(what, node, next, n)
  const submit = async (e: Event) => {
    e.preventDefault()
    if (!asked) return
    setError('')
    try {
      await api.stage(what, asked)
      setNode('')
      setNext('')
      onDone()
    } catch (e) {
      setError((e as Error).message)
    }
  }
  return (
    <form class="create" onSubmit={submit} aria-label="Stage a change">
      <label>Change
        <select value={what} onChange={(e) => { setWhat(e.currentTarget.value as Staging); setNode(''); setError('') }}>
          {ways.map(([way, title]) => <option key={way} value={way}>{title}</option>)}
        </select>
      </label>
      {what === 'set-n'
        ? <label>Copies<input type="number" min="1" max="15" value={n} placeholder={String(c.n)} onInput={(e) => setN(e.currentTarget.value)} /></label>
        : <Choice label="Node" of={what === 'join' ? c.waiting : members} value={node} onChange={setNode} />}
      {what === 'replace' && <Choice label="New node" of={c.waiting} value={next} onChange={setNext} />}
      <button class="main" disabled={!asked}>Stage</button>
      {(what === 'join' || what === 'replace') && c.waiting.length === 0 && (
        <p class="note">No node waits to join: start one with <code>cluster.join</code> set to where this node gossips.</p>
      )}
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}

function Choice({ label, of, value, onChange }: { label: string; of: string[]; value: string; onChange: (name: string) => void }) {
  return (
    <label>{label}
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        <option value="">choose …</option>
        {of.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  )
}
