import { useState } from 'preact/hooks'
import { Fact } from '../buckets/detail'
import { Confirmed } from '../confirm'
import { bytes, duration, si } from '../format'
import { useLoad } from '../hooks'
import { StoreChart } from '../node/charts'
import { ducks, type Boot, type Change, type Device, type Group, type Mode } from './client'
import { nextText, parts, trafficQuery, when } from './figures'
import { ModeChoice, modeText } from './room'

interface Props {
  name: string
  utc: boolean
  theme: string
}

/** One device: what it is, how it boots, what it moves, and what can be done to it. */
export function DevicePage({ name, utc, theme }: Props) {
  const { value: d, error, reload } = useLoad((signal) => ducks.device(name, signal), [name], 2000)
  const plan = useLoad((signal) => ducks.plan(signal), [name, d?.group, d?.mode, d?.pin, d?.afresh], 10_000)
  const groups = useLoad((signal) => ducks.groups(signal), [])
  const next = plan.value?.find((p) => p.device === name)
  if (!d) return error ? <p class="problem" role="alert">{error}</p> : <p class="note">Loading …</p>
  return (
    <>
      <div class="head">
        <h1>{d.name}</h1>
        {d.on ? <span class="pill good">its disk is in use</span> : <span class="tag">off</span>}
        <span class="spring" />
        {d.mode !== 'volatile' && !d.afresh && <Confirmed label="Begin anew" act={() => ducks.change(d.name, { afresh: true })} onDone={() => { reload(); plan.reload() }}
          what={`When ${d.name} boots the next time, what it has written goes, once. It stays ${modeText(d, utc)}.`} />}
        {d.afresh && <button onClick={() => void ducks.change(d.name, { afresh: false }).then(() => { reload(); plan.reload() })}>Keep all the same</button>}
        <Wake device={d} />
      </div>
      {error && <p class="problem" role="alert">{error}</p>}
      <dl class="facts card">
        <Fact name="Group" value={d.group} />
        <Fact name="MAC address" value={d.mac} />
        <Fact name="Mode" value={modeText(d, utc)} />
        <Fact name="Began with" value={d.version ? `version ${d.version}` : '–'} />
        <Fact name="Gets next" value={next ? `${nextText(next)}: ${next.why}` : '–'} />
        <Fact name="Then loses" value={next?.loses_bytes ? bytes(next.loses_bytes) : '–'} />
        <Fact name="Limit" value={d.limit ? `${si(d.limit, 'bit')}/s` : 'none'} />
        <Fact name="May take of the pool" value={d.space ? bytes(d.space) : 'no limit'} />
        <Fact name="Read in this session" value={bytes(d.read_bytes)} />
        <Fact name="Written in this session" value={bytes(d.write_bytes)} />
        <Fact name="Target" value={`${d.iqn} at ${d.portal}`} />
        <Fact name="Initiator" value={d.initiator} />
      </dl>
      <Boots name={name} utc={utc} />
      <StoreChart title="What it moves" bucket="ducks" query={trafficQuery(name)} utc={utc} theme={theme}
        none="The store has nothing of it from the last ten minutes: ducks serve sends figures with --ddb." />
      <ChangeForm key={JSON.stringify([d.group, d.mode, d.pin, d.limit, d.space])} d={d} groups={groups.value ?? []} onDone={reload} />
    </>
  )
}

function Wake({ device }: { device: Device }) {
  const [said, setSaid] = useState('')
  const wake = async () => {
    try {
      await ducks.wake(device.name)
      setSaid('A packet that wakes it was sent.')
    } catch (e) {
      setSaid((e as Error).message)
    }
  }
  return <>{said && <span class="note" role="status">{said}</span>}<button disabled={device.on} onClick={wake}>Wake</button></>
}

function Boots({ name, utc }: { name: string; utc: boolean }) {
  const { value, error } = useLoad((signal) => ducks.boots(name, signal), [name], 2000)
  return (
    <section class="card" aria-label="Boots">
      <h2>Last boots</h2>
      {error && <p class="problem" role="alert">{error}</p>}
      {value?.length === 0 && <p class="note">It has not booted since ducks runs.</p>}
      {value?.map((b) => <Timeline key={b.begun} boot={b} longest={Math.max(...value.map((of) => of.stages.at(-1)?.seconds ?? 0))} utc={utc} />)}
    </section>
  )
}

/** A boot as a bar of its stages. */
function Timeline({ boot, longest, utc }: { boot: Boot; longest: number; utc: boolean }) {
  const list = parts(boot)
  const x = (seconds: number) => (longest > 0 ? (seconds / longest) * 1000 : 0)
  return (
    <figure class="boot">
      <figcaption>{when(boot.begun, utc)} <span class="note">{list.at(-1)?.stage} after {duration((list.at(-1)?.to ?? 0) * 1000)}</span></figcaption>
      <svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label={list.map((p) => `${p.stage} after ${p.to.toFixed(1)} s`).join(', ')}>
        {list.map((p, i) => (
          <rect key={p.stage} class={i % 2 ? 'odd' : ''} x={x(p.from)} width={Math.max(2, x(p.to) - x(p.from))} y="0" height="20"><title>{`${p.stage}: ${duration((p.to - p.from) * 1000)}`}</title></rect>
        ))}
      </svg>
      <span class="keys">{list.map((p) => <span key={p.stage}>{p.stage}{p.to > 0 && ` ${duration((p.to - p.from) * 1000)}`}</span>)}</span>
    </figure>
  )
}

/** Moves a device to another group, or changes how it boots. */
function ChangeForm({ d, groups, onDone }: { d: Device; groups: Group[]; onDone: () => void }) {
  const [group, setGroup] = useState(d.group)
  const [mode, setMode] = useState<Mode>(d.mode)
  const [pin, setPin] = useState(d.pin ?? 0)
  const [limit, setLimit] = useState(d.limit ? String(d.limit / 1e6) : '')
  const [space, setSpace] = useState(d.space ? String(d.space / 2 ** 30) : '')
  const [error, setError] = useState('')
  const gibibytes = space.trim() === '' ? 0 : Number(space)
  const megabits = limit.trim() === '' ? 0 : Number(limit)
  const change: Change = {}
  if (group !== d.group) change.group = group
  if (mode !== d.mode) change.mode = mode
  if (pin !== (d.pin ?? 0)) change.pin = pin
  if (megabits * 1e6 !== (d.limit ?? 0)) change.limit = Math.round(megabits * 1e6)
  if (gibibytes * 2 ** 30 !== (d.space ?? 0)) change.space = Math.round(gibibytes * 2 ** 30)
  const versions = groups.find((g) => g.name === group)?.versions ?? []
  const submit = async (e: Event) => {
    e.preventDefault()
    try {
      await ducks.change(d.name, change)
      onDone()
    } catch (e) {
      setError((e as Error).message)
    }
  }
  return (
    <form class="card create" onSubmit={submit} aria-label="Change the device">
      <label>Group<select value={group} onChange={(e) => setGroup(e.currentTarget.value)}>{groups.map((g) => <option key={g.name}>{g.name}</option>)}</select></label>
      <label>Mode{d.mode === 'until' && mode === 'until' ? <button type="button" onClick={() => setMode('volatile')}>no date any more</button> : <ModeChoice mode={mode} onMode={setMode} />}</label>
      <label>Version<select value={pin} onChange={(e) => setPin(Number(e.currentTarget.value))}>
        <option value={0}>that of the group</option>
        {versions.map((v) => <option key={v.number} value={v.number}>{v.number}, whatever the group has</option>)}
      </select></label>
      <label>Limit, Mbit/s<input value={limit} size={6} placeholder="none" onInput={(e) => setLimit(e.currentTarget.value)} /></label>
      <label>Space, GiB<input value={space} size={6} placeholder="no limit" onInput={(e) => setSpace(e.currentTarget.value)} /></label>
      <button class="main" disabled={Object.keys(change).length === 0 || !(megabits >= 0) || !(gibibytes >= 0)}>Change</button>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}
