import { api } from '../api'
import { useLoad } from '../hooks'
import type { Go, State } from '../url'
import { ducks, useEntry } from './client'
import { DevicePage } from './device'
import { ImagesPage } from './images'
import { Login } from './login'
import { RoomPage } from './room'

export interface Props {
  state: State
  go: Go
  theme: string
}

/** The rooms of the ducks that the node knows. */
export function DucksPage(p: Props) {
  const { value, error } = useLoad((signal) => api.status(signal), [])
  const inside = useEntry()
  if (error) return <p class="problem" role="alert">{error}</p>
  if (!value) return <p class="note">Loading …</p>
  if (!value.ducks) {
    return (
      <section class="empty">
        <h2>This node knows no ducks</h2>
        <p>Set <code>ducks.url</code> to where one answers, such as <code>http://127.0.0.1:8091</code>: then its rooms are shown here.</p>
      </section>
    )
  }
  return inside ? <Inside {...p} /> : <Login />
}

function Inside({ state, go, theme }: Props) {
  const tab = (show: State['show'], title: string) => (
    <button aria-pressed={!state.device && state.show === show} onClick={() => go({ show, device: '' })}>{title}</button>
  )
  return (
    <div class="page ducks">
      <div class="head">
        <span class="segments">{tab('room', 'Room')}{tab('images', 'Images')}</span>
        <span class="spring" />
        <button class="quiet" onClick={() => void ducks.logout()}>Log out</button>
      </div>
      {state.device
        ? <DevicePage key={state.device} name={state.device} utc={state.utc} theme={theme} />
        : state.show === 'images' ? <ImagesPage utc={state.utc} /> : <RoomPage go={go} utc={state.utc} />}
    </div>
  )
}
