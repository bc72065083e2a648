import { useEffect, useRef, useState } from 'preact/hooks'
import { stored, store } from '../hooks'
import { moment } from '../format'

interface Past { query: string; at: number }
interface Saved { name: string; query: string }

const most = 100

/** Notes a query in the history of this browser; the same query moves to the top. */
export function remember(query: string): void {
  const past = stored<Past[]>('history', []).filter((p) => p.query !== query)
  store('history', [{ query, at: Date.now() }, ...past].slice(0, most))
}

interface Props {
  query: string
  utc: boolean
  onOpen: (query: string) => void
}

/** The queries that were saved, and those that were run. */
export function Library({ query, utc, onOpen }: Props) {
  const [open, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!open) return
    const close = (e: Event) => {
      if (e instanceof KeyboardEvent ? e.key === 'Escape' : !root.current!.contains(e.target as Node)) setOpen(false)
    }
    document.addEventListener('keydown', close)
    document.addEventListener('mousedown', close)
    return () => {
      document.removeEventListener('keydown', close)
      document.removeEventListener('mousedown', close)
    }
  }, [open])
  return (
    <div class="library" ref={root}>
      <button aria-expanded={open} onClick={() => setOpen(!open)}>Saved and history</button>
      {open && <Lists query={query} utc={utc} onOpen={(q) => { setOpen(false); onOpen(q) }} />}
    </div>
  )
}

function Lists({ query, utc, onOpen }: Props) {
  const [saved, setSaved] = useState(() => stored<Saved[]>('saved', []))
  const [past, setPast] = useState(() => stored<Past[]>('history', []))
  const [name, setName] = useState('')
  const keep = (list: Saved[]) => { setSaved(list); store('saved', list) }
  const save = (e: Event) => {
    e.preventDefault()
    if (!name.trim() || !query.trim()) return
    keep([...saved.filter((s) => s.name !== name.trim()), { name: name.trim(), query }].sort((a, b) => a.name.localeCompare(b.name)))
    setName('')
  }
  return (
    <div class="popover">
      <form class="row" onSubmit={save}>
        <input value={name} placeholder="Name for the query in the editor" aria-label="Name of the query" onInput={(e) => setName(e.currentTarget.value)} />
        <button class="main" disabled={!name.trim() || !query.trim()}>Save</button>
      </form>
      {saved.length > 0 && <h3>Saved</h3>}
      <ul>
        {saved.map((s) => (
          <li key={s.name}>
            <button class="entry" onClick={() => onOpen(s.query)}><b>{s.name}</b><code>{s.query}</code></button>
            <button class="quiet icon" aria-label={`Remove ${s.name}`} onClick={() => keep(saved.filter((o) => o !== s))}>✕</button>
          </li>
        ))}
      </ul>
      <h3>History {past.length > 0 && <button class="link" onClick={() => { setPast([]); store('history', []) }}>clear</button>}</h3>
      {past.length === 0 && <p class="note">Queries that were run appear here, in this browser only.</p>}
      <ul>
        {past.map((p) => (
          <li key={p.query}><button class="entry" onClick={() => onOpen(p.query)}><small>{moment(Math.floor(p.at / 1000) * 1000, utc)}</small><code>{p.query}</code></button></li>
        ))}
      </ul>
    </div>
  )
}
