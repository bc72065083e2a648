import { useRef, useState } from 'preact/hooks'
import { bytes, duration, si } from '../format'
import { useLoad } from '../hooks'
import { Bar } from '../query/legend'
import { link, type Go } from '../url'
import { ducks, type Device, type Group, type Mode, type Planned, type Unknown } from './client'
import { byGroup, deviceOf, devicesText, look, nextText, when, type Look, type Rate } from './figures'

interface Props {
  go: Go
  utc: boolean
}

/** How the room does: what somebody should look at, what waits, and each device. */
export function RoomPage({ go, utc }: Props) {
  const last = useRef<Look>(undefined)
  const now = useLoad(async (signal) => (last.current = look(await ducks.devices(signal), last.current)), [], 2000)
  const list = now.value?.devices
  const plan = useLoad((signal) => ducks.plan(signal), [list?.map((d) => [d.name, d.stage_at, d.group, d.mode, d.pin].join()).join()], 10_000)
  const groups = useLoad((signal) => ducks.groups(signal), [], 10_000)
  const several = list?.some((d) => d.network !== list[0]!.network)
  return (
    <>
      <div class="head">
        <h1>Room</h1>
        {list && list.length > 0 && <span class="pill good">{list.filter((d) => d.on).length} of {devicesText(list.length)} on</span>}
        <span class="spring" />
        <Space />
      </div>
      {now.error && <p class="problem" role="alert">{now.error}</p>}
      <Alerts go={go} utc={utc} />
      <Waiting groups={groups.value ?? []} utc={utc} onAdded={() => { now.reload(); plan.reload() }} />
      {list?.length === 0 && <p class="note">There is no device yet. A machine that asks for something to boot shows up here, and can be added.</p>}
      {list && byGroup(list).map(([name, devices]) => (
        <GroupSection key={name} name={name} group={groups.value?.find((g) => g.name === name)} network={several ? devices[0]!.network : undefined} devices={devices} rates={now.value!.rates} plan={plan.value} go={go} utc={utc} />
      ))}
    </>
  )
}

function Space() {
  const { value } = useLoad((signal) => ducks.space(signal), [], 10_000)
  if (!value) return null // who is limited to some groups is told nothing of the pool
  return (
    <span class="note">
      <span class="meter"><Bar share={1 - value.free_bytes / value.total_bytes} /></span> {bytes(value.free_bytes)} of {bytes(value.total_bytes)} free
    </span>
  )
}

function Alerts({ go, utc }: Props) {
  const { value, error } = useLoad((signal) => ducks.alerts(signal), [], 5000)
  const list = value?.filter((a) => !a.object.startsWith('machine ')) // these wait below, with what adds them
  if (error || !list?.length) return null // they concern all: not everybody may see them
  return (
    <section class="card alerts" aria-label="Alerts">
      <h2>To be looked at</h2>
      <ul>
        {list.map((a) => {
          const device = deviceOf(a.object)
          return (
            <li key={`${a.object} ${a.text}`}>
              <b>{device ? <To device={device} go={go} /> : a.object.startsWith('group ') ? <ToImages go={go}>{a.object}</ToImages> : a.object}</b>: {a.text}
              {a.since && <span class="note"> since {when(a.since, utc)}</span>}
              <p class="note">{a.remedy}</p>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

/** A link to a device. */
function To({ device, go }: { device: string; go: Go }) {
  return <a href={link({ page: 'ducks', device })} onClick={(e) => { e.preventDefault(); go({ device }) }}>{device}</a>
}

function ToImages({ go, children }: { go: Go; children: preact.ComponentChildren }) {
  return <a href={link({ page: 'ducks', show: 'images' })} onClick={(e) => { e.preventDefault(); go({ show: 'images' }) }}>{children}</a>
}

function Waiting({ groups, utc, onAdded }: { groups: Group[]; utc: boolean; onAdded: () => void }) {
  const { value, error, reload } = useLoad((signal) => ducks.unknown(signal), [], 5000)
  if (error || !value?.length) return null
  return (
    <section class="card" aria-label="Machines that wait">
      <h2>Machines that wait to be added</h2>
      {groups.length === 0 && <p class="hint">There is no group to add them to: make one with <code>ducks group create</code>.</p>}
      {value.map((u) => <Approve key={u.mac} machine={u} groups={groups} utc={utc} onAdded={() => { reload(); onAdded() }} />)}
    </section>
  )
}

function Approve({ machine: u, groups, utc, onAdded }: { machine: Unknown; groups: Group[]; utc: boolean; onAdded: () => void }) {
  const [name, setName] = useState('')
  const [group, setGroup] = useState('')
  const [mode, setMode] = useState<Mode>('volatile')
  const [error, setError] = useState('')
  const submit = async (e: Event) => {
    e.preventDefault()
    try {
      await ducks.add(u.mac, name.trim(), group || groups[0]!.name, mode)
      onAdded()
    } catch (e) {
      setError((e as Error).message)
    }
  }
  return (
    <form class="create" onSubmit={submit} aria-label={`Add ${u.mac}`}>
      <span><code>{u.mac}</code> <span class="note">at {u.address}, seen {when(u.last, utc)}</span></span>
      <label>Name<input value={name} size={12} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label>Group<select value={group || groups[0]?.name} onChange={(e) => setGroup(e.currentTarget.value)}>{groups.map((g) => <option key={g.name}>{g.name}</option>)}</select></label>
      <label>Mode<ModeChoice mode={mode} onMode={setMode} /></label>
      <button class="main" disabled={!name.trim() || groups.length === 0}>Add</button>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}

/** The modes that need no date. */
export function ModeChoice({ mode, onMode }: { mode: Mode; onMode: (mode: Mode) => void }) {
  return (
    <select value={mode} onChange={(e) => onMode(e.currentTarget.value as Mode)}>
      <option value="volatile">volatile: what it writes is gone when it boots again</option>
      <option value="persistent">persistent: what it writes stays</option>
    </select>
  )
}

interface GroupProps extends Props {
  name: string
  group?: Group
  network?: string // nothing where there is only one
  devices: Device[]
  rates: Map<string, Rate>
  plan?: Planned[]
}

function GroupSection({ name, group, network, devices, rates, plan, go, utc }: GroupProps) {
  return (
    <section class="card scroll" aria-label={`Group ${name}`}>
      <div class="head">
        <h2>{name}</h2>
        {network && <span class="note">network {network}</span>}
        {group?.canary && <span class="pill warn">version {group.canary.version} is tried by canaries</span>}
        {group?.withdrawn && <span class="pill warn">version {group.withdrawn.version} was taken back</span>}
      </div>
      <table>
        <thead>
          <tr>
            <th>Device</th><th class="text">Disk</th><th class="text">Last boot</th><th>Reads</th><th>Writes</th><th class="text">Has</th>
            <th class="text" title="When it boots the next time">Gets next</th><th title="What it has written and then loses">Loses</th><th class="text">Mode</th>
          </tr>
        </thead>
        <tbody>
          {devices.map((d) => <Row key={d.name} d={d} rate={rates.get(d.name)} next={plan?.find((p) => p.device === d.name)} go={go} utc={utc} />)}
        </tbody>
      </table>
    </section>
  )
}

function Row({ d, rate, next, go, utc }: { d: Device; rate?: Rate; next?: Planned } & Props) {
  const at = d.stage_at ? Date.parse(d.stage_at) : 0
  return (
    <tr>
      <td title={d.mac}><To device={d.name} go={go} /></td>
      <td class="text">{d.on ? <span class="pill good">in use</span> : <span class="note">off</span>}</td>
      <td class="text" title={d.stage_at ? when(d.stage_at, utc) : ''}>{d.stage ? `${d.stage}, ${duration(Math.max(0, Date.now() - at))} ago` : '–'}{d.lacks && `, lacks ${d.lacks}`}</td>
      <td>{rate ? `${si(rate.read, 'B')}/s` : '–'}</td>
      <td>{rate ? `${si(rate.written, 'B')}/s` : '–'}</td>
      <td class="text">{d.version ? `version ${d.version}` : '–'}</td>
      <td class="text" title={next?.why}>{nextText(next)}</td>
      <td>{next?.loses_bytes ? bytes(next.loses_bytes) : '–'}</td>
      <td class="text">{modeText(d, utc)}{d.pin ? <span class="tag">pinned to {d.pin}</span> : ''}</td>
    </tr>
  )
}

export function modeText(d: Device, utc: boolean): string {
  return d.mode === 'until' && d.until ? `until ${when(d.until, utc)}` : d.mode
}
