import { useState } from 'preact/hooks'
import { ducks } from './client'

/** Lets somebody into ducks, who has a user or a token there. */
export function Login() {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await ducks.login(name.trim(), password)
    } catch (e) {
      setError((e as Error).message)
      setBusy(false)
    }
  }
  return (
    <form class="card login" onSubmit={submit} aria-label="Log in to ducks">
      <h1>Ducks</h1>
      <label>User<input autofocus autocomplete="username" value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label>Password<input type="password" autocomplete="current-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} /></label>
      <p class="note">Whoever has a token and no user leaves the name empty and gives the token as password.</p>
      <button class="main" disabled={busy || !password}>Log in</button>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}
