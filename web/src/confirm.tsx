import { useState } from 'preact/hooks'

interface Props {
  label: string
  what: string // happens
  word?: string // to be typed: for what cannot simply be taken back
  disabled?: boolean
  act: () => Promise<unknown>
  onDone: () => void
}

/** A button for a change of the whole cluster, which asks before it does it. */
export function Confirmed({ label, what, word, disabled, act, onDone }: Props) {
  const [asking, setAsking] = useState(false)
  const [busy, setBusy] = useState(false)
  const [typed, setTyped] = useState('')
  const [error, setError] = useState('')
  const close = () => {
    setAsking(false)
    setTyped('')
    setError('')
  }
  const submit = async (e: Event) => {
    e.preventDefault()
    if (busy || (word && typed !== word)) return
    setBusy(true)
    try {
      await act()
      close()
      onDone()
    } catch (e) {
      setError((e as Error).message)
    }
    setBusy(false)
  }
  if (!asking) return <button disabled={disabled} onClick={() => setAsking(true)}>{label} …</button>
  return (
    <form class="confirm" onSubmit={submit} aria-label={label}>
      <p class="note">{what}{word && <> Type <b>{word}</b> to say that you mean it.</>}</p>
      <div class="row">
        {word && <input aria-label={`Type ${word}`} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />}
        <button class="danger" disabled={busy || (word !== undefined && typed !== word)}>{label}</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}
