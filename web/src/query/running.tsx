import { useEffect, useState } from 'preact/hooks'
import { api } from '../api'
import { duration } from '../format'
import type { Run } from './run'

/** Most queries are over before anybody could want to end them. */
const patience = 400 // ms
const again = 250

/** Runs the query; of one that takes longer it shows how far it is and for how long, and ends it. */
export function RunButton({ run, onRun }: { run: Run; onRun: () => void }) {
  const [took, setTook] = useState(0)
  const [share, setShare] = useState(0)
  useEffect(() => {
    setTook(0)
    setShare(0)
    if (!run.busy) return
    const stop = new AbortController()
    let asking = false
    const timer = window.setInterval(() => {
      const now = performance.now() - run.since
      setTook(now)
      if (now < patience || asking) return
      asking = true
      api.running(run.id, stop.signal)
        .then(([query]) => query && setShare(query.share))
        .catch(() => undefined) // the answer of the query itself says what is wrong
        .finally(() => (asking = false))
    }, again)
    return () => {
      stop.abort()
      window.clearInterval(timer)
    }
  }, [run.busy, run.since])
  if (!run.busy || took < patience) return <button class="main" title="Ctrl-Enter" onClick={onRun}>Run</button>
  return (
    <>
      <button class="main" onClick={run.cancel}>Cancel</button>
      <span class="running" role="timer">
        <progress aria-label="Share of the range that has been read" value={share || undefined} /> {duration(Math.floor(took / 100) * 100)}
      </span>
    </>
  )
}
