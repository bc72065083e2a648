import { useEffect, useState } from 'preact/hooks'
import { api } from '../api'
import { quoted, tagText } from '../dql/tokens'
import { count } from '../format'
import { useLoad } from '../hooks'
import { lookupText, matching, whereText, type Condition } from './lookup'

const limit = 200
const mostCollections = 1000

/** Builds a lookup by clicks: a collection, then tags and their values. */
export function TagBrowser({ onInsert }: { onInsert: (query: string) => void }) {
  const [collection, setCollection] = useState('')
  const [conditions, setConditions] = useState<Condition[]>([])
  const [tag, setTag] = useState('')
  const collections = useLoad((signal) => api.tagCollections({ limit: mostCollections }, signal), [])
  const where = whereText(conditions)
  const found = useLoad((signal) => (collection ? matching(collection, where, signal) : Promise.resolve(0)), [collection, where])
  const choose = (name: string) => {
    setCollection(name)
    setConditions([])
    setTag('')
  }
  const add = (c: Condition) => {
    setConditions([...conditions.filter((o) => o.tag !== c.tag), c])
    setTag('')
  }
  const tagged = collections.value?.list
  return (
    <section class="card browser" aria-label="Tag browser">
      <div class="head">
        <label>Collection{' '}
          <select value={collection} onChange={(e) => choose(e.currentTarget.value)}>
            <option value="">{tagged ? 'choose …' : 'loading …'}</option>
            {tagged?.map((c) => <option key={c.text} value={c.text}>{c.text} ({count(c.series)})</option>)}
          </select>
        </label>
        {conditions.map((c) => (
          <span class="chip" key={c.tag}>
            <code>{whereText([c])}</code>
            <button class="quiet icon" aria-label={`${c.not ? 'Take' : 'Exclude'} ${tagText(c.tag)}`} title="Not so" aria-pressed={c.not ?? false}
              onClick={() => setConditions(conditions.map((o) => (o === c ? { ...c, not: !c.not } : o)))}>≠</button>
            <button class="quiet icon" aria-label={`Remove ${tagText(c.tag)}`} onClick={() => setConditions(conditions.filter((o) => o !== c))}>✕</button>
          </span>
        ))}
        <span class="spring" />
        {collection && <span class="timing" role="status" aria-label="Matching series">{found.value === undefined ? '…' : `${count(found.value)} series`}</span>}
        <button class="main" disabled={!collection} onClick={() => onInsert(lookupText(collection, conditions))}>Insert query</button>
      </div>
      {(collections.error ?? found.error) && <p class="bad" role="alert">{collections.error ?? found.error}</p>}
      {collections.value?.more && <p class="note">These are the first {mostCollections} collections; write others as <code>FROM</code> in a query.</p>}
      {tagged?.length === 0 && <p class="note">No series has tags. <code>ddb admin tags import</code> and <code>POST /tags</code> give them.</p>}
      {collection && (
        <div class="columns even">
          <List key={`tags ${collection}`} title="Tags" load={(prefix, signal) => api.tagNames(collection, { where, prefix, limit }, signal)}
            deps={[collection, where]} text={tagText} chosen={tag} onChoose={setTag} />
          {tag && (
            <List key={`values ${tag}`} title={`Values of ${tagText(tag)}`} load={(prefix, signal) => api.tagValues(collection, tag, { where, prefix, limit }, signal)}
              deps={[collection, where, tag]} text={(v) => v} onChoose={(value) => add({ tag, value })} onAny={() => add({ tag })} />
          )}
        </div>
      )}
    </section>
  )
}

interface ListProps {
  title: string
  load: (prefix: string, signal: AbortSignal) => Promise<{ list: { text: string; series: number }[]; more: boolean }>
  deps: unknown[]
  text: (name: string) => string
  chosen?: string
  onChoose: (name: string) => void
  onAny?: () => void
}

/** Names with their counts; what is typed is what they begin with. */
function List({ title, load, deps, text, chosen, onChoose, onAny }: ListProps) {
  const [typed, setTyped] = useState('')
  const [prefix, setPrefix] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setPrefix(typed.trim()), 250) // while somebody types
    return () => clearTimeout(timer)
  }, [typed])
  const { value, error } = useLoad((signal) => load(prefix, signal), [...deps, prefix])
  return (
    <section aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        <input type="search" placeholder="Begins with" aria-label={`${title} that begin with`} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        {onAny && <button onClick={onAny}>Any value</button>}
      </div>
      {error && <p class="bad" role="alert">{error}</p>}
      <ul class="counted">
        {value?.list.map((e) => (
          <li key={e.text}>
            <button class="entry" aria-pressed={chosen === undefined ? undefined : chosen === e.text} onClick={() => onChoose(e.text)}>
              <code>{text(e.text) || quoted('')}</code> <small>{count(e.series)}</small>
            </button>
          </li>
        ))}
      </ul>
      {value && value.list.length === 0 && <p class="note">None{prefix && ` begins with “${prefix}”`}.</p>}
      {value?.more && <p class="note">These are the first {limit}; a longer beginning finds others.</p>}
    </section>
  )
}
