import { useState } from 'preact/hooks'
import { api, type Bucket } from '../api'
import { spanMs } from '../dql/range'

interface Props {
  taken: string[]
  onDone: () => void
  onCancel: () => void
}

/** A span in the form, in points of a resolution; undefined when it is none. */
export function pointsIn(span: string, resolution: number): number | undefined {
  const ms = spanMs(span.trim())
  return ms === undefined || ms < resolution ? undefined : Math.floor(ms / resolution)
}

export function Create({ taken, onDone, onCancel }: Props) {
  const [name, setName] = useState('')
  const [resolution, setResolution] = useState('1s')
  const [file, setFile] = useState('1w')
  const [ttl, setTTL] = useState('')
  const [grace, setGrace] = useState('')
  const [hpts, setHPTS] = useState(false)
  const [error, setError] = useState('')
  const wrong = check()

  function check(): string {
    const step = spanMs(resolution.trim())
    if (!name) return ''
    if (taken.includes(name)) return `There is a bucket ${name} already.`
    if (!step) return 'The resolution is a span such as 1s, 500ms or 1m.'
    if (pointsIn(file, step) === undefined) return 'The time per file is a span such as 1w, at least as long as the resolution.'
    if (ttl.trim() && pointsIn(ttl, step) === undefined) return 'The TTL is a span such as 30d, at least as long as the resolution, or empty.'
    if (grace.trim() && spanMs(grace.trim()) === undefined) return 'Grace is a span such as 5s, or empty.'
    return ''
  }

  const submit = async (e: Event) => {
    e.preventDefault()
    if (!name || wrong) return
    const step = spanMs(resolution.trim())!
    const bucket: Bucket = {
      name, resolution: step, ppf: pointsIn(file, step)!, hpts,
      grace: grace.trim() ? spanMs(grace.trim())! * 1e6 : 0, ttl: ttl.trim() ? pointsIn(ttl, step)! : 'infinity',
    }
    try {
      await api.createBucket(bucket)
      onDone()
    } catch (e) {
      setError((e as Error).message)
    }
  }

  return (
    <form class="card create" onSubmit={submit} aria-label="Create a bucket">
      <label>Name<input autofocus value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label>Resolution<input value={resolution} size={6} onInput={(e) => setResolution(e.currentTarget.value)} /></label>
      <label>Time per file<input value={file} size={6} onInput={(e) => setFile(e.currentTarget.value)} /></label>
      <label>TTL<input value={ttl} size={8} placeholder="forever" onInput={(e) => setTTL(e.currentTarget.value)} /></label>
      <label>Grace<input value={grace} size={6} placeholder="0" onInput={(e) => setGrace(e.currentTarget.value)} /></label>
      <label class="check"><input type="checkbox" checked={hpts} onChange={(e) => setHPTS(e.currentTarget.checked)} /> High precision timestamps</label>
      <span class="row">
        <button class="main" disabled={!name || wrong !== ''}>Create</button>
        <button type="button" onClick={onCancel}>Cancel</button>
      </span>
      {(wrong || error) && <p class="bad" role="alert">{wrong || error}</p>}
    </form>
  )
}
