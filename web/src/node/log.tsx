import { useState } from 'preact/hooks'
import { api } from '../api'
import { moment } from '../format'
import { useLoad } from '../hooks'

const levels = ['DEBUG', 'INFO', 'WARN', 'ERROR']

/** The last lines of the log, the newest first. */
export function LogSection({ utc }: { utc: boolean }) {
  const [least, setLeast] = useState('INFO')
  const { value, error } = useLoad((signal) => api.log(signal), [], 2000)
  const lines = (value ?? []).filter((l) => levels.indexOf(l.level) >= levels.indexOf(least)).reverse()
  return (
    <section class="card">
      <div class="head">
        <h2>Log</h2>
        <span class="note">the last {value?.length ?? 0} lines</span>
        <span class="spring" />
        <span class="segments">
          {levels.slice(1).map((l) => <button key={l} aria-pressed={least === l} onClick={() => setLeast(l)}>{l.toLowerCase()}</button>)}
        </span>
      </div>
      {error && <p class="bad">{error}</p>}
      <ol class="log">
        {lines.map((l) => (
          <li key={l.n} class={l.level.toLowerCase()}>
            <time>{moment(Math.floor(l.time_ms / 1000) * 1000, utc)}</time>
            <b>{l.level}</b>
            <span>{l.message}{l.fields && <code> {l.fields}</code>}</span>
          </li>
        ))}
      </ol>
      {value && lines.length === 0 && <p class="note">No line of this level.</p>}
    </section>
  )
}
