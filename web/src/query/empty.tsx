import { api } from '../api'
import { quoted } from '../dql/tokens'
import { useLoad } from '../hooks'

/** By which a listener is reached: one on all addresses by the name that the browser uses. */
export function reached(addr: string): string {
  const at = addr.lastIndexOf(':')
  const host = addr.slice(0, at)
  return (['', '0.0.0.0', '[::]'].includes(host) ? location.hostname : host) + addr.slice(at)
}

/** The line that loads this node. */
export function haggar(tcpAddr: string): string {
  return `haggar -carbon ${reached(tcpAddr)} -agents 10 -metrics 200 -flush-interval 1s -spawn-interval 1s -jitter 1s`
}

interface Example { title: string; query: string }

/** What to do before there is a query. */
export function Empty({ onTry }: { onTry: (query: string) => void }) {
  const { value } = useLoad(async (signal) => {
    const [buckets, { tcp_addr }] = await Promise.all([api.buckets(signal), api.status(signal)])
    const own = buckets.filter((b) => b.name !== 'dalmatinerdb')
    const examples = await Promise.all(own.slice(0, 3).map(async (b): Promise<Example | undefined> => {
      const [first] = await api.metrics(b.name, '', 1, signal)
      return first ? { title: `A series of ${b.name}`, query: `SELECT ${first} BUCKET ${quoted(b.name)} LAST 15m` } : undefined
    }))
    return { tcp_addr, none: own.length === 0, examples: examples.filter((e) => e !== undefined), self: own.length < buckets.length }
  }, [])
  if (!value) return null
  const examples = [...value.examples]
  if (value.self) {
    examples.push({ title: 'Points per second that this node stores', query: 'SELECT sum(*.mps BUCKET dalmatinerdb) LAST 15m' })
    examples.push({ title: 'Its log and its memory', query: 'SELECT *.wal.bytes BUCKET dalmatinerdb AS log METADATA {unit: \'B\'}, *.head.bytes BUCKET dalmatinerdb AS head METADATA {unit: \'B\'} LAST 15m' })
  }
  return (
    <section class="empty">
      {value.none && (
        <>
          <h2>No bucket holds data of yours yet</h2>
          <p>Points come in over TCP. This line loads the node with 2000 series, one point a second each:</p>
          <Copy text={haggar(value.tcp_addr)} />
        </>
      )}
      <h2>{value.none ? 'Meanwhile' : 'Ask something'}</h2>
      <ul class="examples">
        {examples.map((e) => (
          <li key={e.query}><button class="entry" onClick={() => onTry(e.query)}><b>{e.title}</b><code>{e.query}</code></button></li>
        ))}
      </ul>
      <p class="note">The editor completes buckets, metrics and functions while you type. Ctrl-Enter runs the query.</p>
    </section>
  )
}

/** A line to copy. */
export function Copy({ text }: { text: string }) {
  return (
    <p class="copy">
      <code>{text}</code>
      <button onClick={(e) => {
        const button = e.currentTarget
        void navigator.clipboard?.writeText(text).then(() => (button.textContent = 'Copied'))
      }}>Copy</button>
    </p>
  )
}
