import { useEffect, useState } from 'preact/hooks'
import { api } from '../api'
import { quoted } from '../dql/tokens'
import { useLoad } from '../hooks'
import { link } from '../url'

const mostShown = 300

/** The metrics of a bucket: as a tree, or those that contain a text. */
export function Metrics({ bucket, search, onSearch }: { bucket: string; search: string; onSearch: (text: string) => void }) {
  return (
    <section class="card metrics">
      <div class="head">
        <h2>Metrics</h2>
        <input type="search" placeholder="Search all names" aria-label="Search metrics" value={search} onInput={(e) => onSearch(e.currentTarget.value)} />
      </div>
      {search.trim() ? <Found bucket={bucket} search={search.trim()} /> : <Level key={bucket} bucket={bucket} prefix="" parts={[]} />}
    </section>
  )
}

const query = (metric: string, bucket: string) => link({ query: `SELECT ${metric} BUCKET ${quoted(bucket)} LAST 1h` })

function Found({ bucket, search }: { bucket: string; search: string }) {
  const [settled, setSettled] = useState(search)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(search), 250) // while somebody types
    return () => clearTimeout(timer)
  }, [search])
  const { value, error } = useLoad((signal) => api.metrics(bucket, settled, mostShown, signal), [bucket, settled])
  if (error) return <p class="bad" role="alert">{error}</p>
  if (!value) return <p class="note">Searching …</p>
  if (!value.length) return <p class="note">No metric contains “{settled}”.</p>
  return (
    <>
      <ul class="found">{value.map((name) => <li key={name}><a href={query(name, bucket)}><code>{name}</code></a></li>)}</ul>
      {value.length === mostShown && <p class="note">These are the first {mostShown}; a longer text finds fewer.</p>}
    </>
  )
}

interface Child {
  key: string
  part: string // escaped
  metric: boolean // a metric ends here
  more: boolean // there are longer ones
}

const byName = (a: string, b: string) => (a < b ? -1 : 1)

/** The parts that follow a prefix, by name. */
async function children(bucket: string, prefix: string, depth: number, signal: AbortSignal): Promise<Child[]> {
  const [one, two] = await Promise.all([
    api.below(bucket, prefix, 1, signal),
    api.below(bucket, prefix, 2, signal).catch(() => undefined), // more than can be listed
  ])
  const ends = new Set(two?.filter((e) => e.parts.length === depth + 1).map((e) => e.key))
  const longer = new Set(two?.filter((e) => e.parts.length === depth + 2).map((e) => e.parts[depth]))
  const here = one.filter((e) => e.parts.length === depth + 1).sort((a, b) => byName(a.parts[depth]!, b.parts[depth]!))
  return here.map((e) => {
    const part = e.parts[depth]!
    return { key: e.key, part, metric: !two || ends.has(e.key), more: !two || longer.has(part) }
  })
}

function Level({ bucket, prefix, parts }: { bucket: string; prefix: string; parts: string[] }) {
  const { value, error } = useLoad((signal) => children(bucket, prefix, parts.length, signal), [bucket, prefix])
  const [shown, setShown] = useState(mostShown)
  if (error) return <p class="bad" role="alert">{error}</p>
  if (!value) return <p class="note">Loading …</p>
  if (!value.length && !parts.length) return <p class="note">No metric yet: they appear with their first point.</p>
  const path = parts.map((p) => `'${p}'.`).join('')
  const leaves = value.filter((c) => c.metric)
  return (
    <ul class="tree" role={parts.length ? 'group' : 'tree'}>
      {leaves.length > 1 && <li class="all"><a href={query(`${path}*`, bucket)}>Chart these {leaves.length}</a></li>}
      {value.slice(0, shown).map((c) => <Branch key={c.key} bucket={bucket} child={c} parts={parts} />)}
      {value.length > shown && <li><button class="link" onClick={() => setShown(shown + mostShown)}>{value.length - shown} more</button></li>}
    </ul>
  )
}

function Branch({ bucket, child, parts }: { bucket: string; child: Child; parts: string[] }) {
  const [open, setOpen] = useState(false)
  const path = [...parts, child.part]
  const name = child.part === '' ? <i>empty</i> : child.part
  return (
    <li role="treeitem" aria-expanded={child.more ? open : undefined}>
      <span class="leaf">
        {child.more ? <button class="fold" aria-label={`${open ? 'Fold' : 'Unfold'} ${child.part}`} onClick={() => setOpen(!open)}>{open ? '▾' : '▸'}</button> : <span class="fold" />}
        {child.metric
          ? <a href={query(path.map((p) => `'${p}'`).join('.'), bucket)}><code>{name}</code></a>
          : <button class="branch" onClick={() => setOpen(!open)}><code>{name}</code></button>}
      </span>
      {open && child.more && <Level bucket={bucket} prefix={child.key} parts={path} />}
    </li>
  )
}
