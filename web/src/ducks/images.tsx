import { useState } from 'preact/hooks'
import { Confirmed } from '../confirm'
import { bytes, count } from '../format'
import { useLoad } from '../hooks'
import { ducks, type Device, type Group, type Version } from './client'
import { devicesText, given, marks, tree, when } from './figures'

/** Volumes, the groups made of them, and the versions of both. */
export function ImagesPage({ utc }: { utc: boolean }) {
  const groups = useLoad((signal) => ducks.groups(signal), [], 5000)
  const volumes = useLoad((signal) => ducks.volumes(signal), [], 10_000)
  const devices = useLoad((signal) => ducks.devices(signal), [], 5000)
  if (groups.error) return <p class="problem" role="alert">{groups.error}</p>
  if (!groups.value) return <p class="note">Loading …</p>
  const list = tree(volumes.value, groups.value)
  const reload = () => { groups.reload(); volumes.reload() }
  return (
    <>
      <div class="head"><h1>Images</h1></div>
      <Networks />
      {list.length === 0 && <p class="note">There is no volume yet: <code>ducks volume create</code> makes an empty one, <code>ducks image import</code> one of an image.</p>}
      {list.map(({ name, volume, groups }) => (
        <section key={name} class="card" aria-label={`Volume ${name}`}>
          <h2>{name} {volume && <span class="note">{bytes(volume.size)}, network {volume.network}</span>}</h2>
          {volume && <Versions of={['volumes', name]} list={volume.versions} utc={utc} marks={() => []} />}
          {groups.map((g) => <GroupTree key={g.name} g={g} devices={(devices.value ?? []).filter((d) => d.group === g.name)} utc={utc} onChange={reload} />)}
        </section>
      ))}
    </>
  )
}

/** What each network has and may have, where there is more than one, or a limit. */
function Networks() {
  const { value } = useLoad((signal) => ducks.networks(signal), [], 10_000)
  if (!value || (value.length < 2 && value.every((n) => Object.keys(n.limits).length === 0))) return null
  const kinds = ['volumes', 'groups', 'devices', 'disks', 'menus'] as const
  return (
    <section class="card scroll" aria-label="Networks">
      <h2>Networks</h2>
      <table>
        <thead>
          <tr>
            <th>Network</th><th class="text">Client</th>{kinds.map((k) => <th key={k}>{k[0]!.toUpperCase() + k.slice(1)}</th>)}
            <th title="The sizes of volumes and further disks, and what the images of devices may take">Given away</th>
          </tr>
        </thead>
        <tbody>
          {value.map((n) => (
            <tr key={n.name}>
              <td>{n.name}</td><td class="text">{n.client}</td>
              {kinds.map((k) => <td key={k}>{n.has[k] ?? 0}{n.limits[k] ? ` of ${n.limits[k]}` : ''}</td>)}
              <td>{bytes(n.has.space ?? 0)}{n.limits.space ? ` of ${bytes(n.limits.space)}` : ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface GroupProps {
  g: Group
  devices: Device[]
  utc: boolean
  onChange: () => void
}

function GroupTree({ g, devices, utc, onChange }: GroupProps) {
  return (
    <section class="branch-of" aria-label={`Group ${g.name}`}>
      <h3>Group {g.name} <span class="note">{devicesText(devices.length)}, of version {given(g)}</span></h3>
      {g.withdrawn && <p class="hint">Version {g.withdrawn.version} was taken back: {g.withdrawn.why}.</p>}
      <Versions of={['groups', g.name]} list={g.versions} utc={utc} marks={(v) => marks(g, v.number)} act={(v) => v.number !== given(g) && (
        <Confirmed label="Use" act={() => ducks.rollback(g.name, v.number)} onDone={onChange}
          what={`Devices of ${g.name} get version ${v.number} when they boot the next time.`} />
      )} />
      <div class="row">
        {g.canary && <Confirmed label="Release" act={() => ducks.release(g.name)} onDone={onChange}
          what={`All devices of ${g.name} get version ${g.canary.version}, which canaries have tried, when they boot the next time.`} />}
        <UpdateForm g={g} devices={devices} onDone={onChange} />
        <Confirmed label="Promote" act={() => ducks.promote(g.name, '')} onDone={onChange}
          what={`Version ${given(g)} becomes the newest of volume ${g.volume}: groups that are made of it begin with that.`} />
      </div>
    </section>
  )
}

interface VersionsProps {
  of: ['groups' | 'volumes', string]
  list: Version[]
  utc: boolean
  marks: (v: Version) => string[]
  act?: (v: Version) => preact.ComponentChildren
}

function Versions({ of, list, utc, marks, act }: VersionsProps) {
  const [shown, setShown] = useState(0) // the version whose files are shown; 0: none
  const first = list[0]?.number
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr><th>Version</th><th class="text">Note</th><th class="text">From</th><th class="text">By</th><th class="text">At</th><th title="Bytes that differ from the version before">Changed</th><th class="text">Was up on</th><th /></tr>
        </thead>
        <tbody>
          {[...list].reverse().map((v) => (
            <tr key={v.number}>
              <td>{v.number}{marks(v).map((m) => <span key={m} class="tag">{m}</span>)}</td>
              <td class="text wrap">{v.note || '–'}</td><td class="text">{v.from || '–'}</td><td class="text">{v.author || '–'}</td>
              <td class="text">{when(v.at, utc)}</td><td>{bytes(v.changed_bytes)}</td>
              <td class="text" title={v.tested?.join(', ')}>{v.tested?.length ? devicesText(v.tested.length) : '–'}</td>
              <td class="acts">
                {v.number !== first && <button aria-pressed={shown === v.number} onClick={() => setShown(shown === v.number ? 0 : v.number)}>Files</button>}
                {act?.(v)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown > 0 && <FilesOf key={shown} of={of} version={shown} />}
    </div>
  )
}

const signs = { added: '+', removed: '−', changed: '~' }

/** Which files of a version are not those of the one before. */
function FilesOf({ of: [kind, name], version }: { of: VersionsProps['of']; version: number }) {
  const { value: c, error } = useLoad((signal) => ducks.files(kind, name, version, signal), [kind, name, version])
  if (error) return <p class="problem" role="alert">{error}</p>
  if (!c) return <p class="note"><span class="spinner" /> The files of both versions are read …</p>
  return (
    <section aria-label={`Files of version ${version}`}>
      <p>Version {version}: {count(c.added)} files added, {count(c.removed)} removed, {count(c.changed)} changed{c.files.length < c.added + c.removed + c.changed && `; the first ${count(c.files.length)} are shown`}.</p>
      {c.partitions.filter((p) => p.error).map((p) => <p key={p.number} class="note">Partition {p.number} is not compared: {p.error}</p>)}
      <ul class="files">
        {c.files.map((f) => (
          <li key={`${f.partition} ${f.path}`}><code>{signs[f.what]} {f.path}</code> <small class="note">{f.what === 'changed' ? `${bytes(f.bytes_before)} → ${bytes(f.bytes_after)}` : bytes(f.what === 'added' ? f.bytes_after : f.bytes_before)}</small></li>
        ))}
      </ul>
    </section>
  )
}

/** Makes what a device has written the newest version of its group. */
function UpdateForm({ g, devices, onDone }: { g: Group; devices: Device[]; onDone: () => void }) {
  const [open, setOpen] = useState(false)
  const [from, setFrom] = useState('')
  const [note, setNote] = useState('')
  const [canary, setCanary] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  if (!open) return <button disabled={devices.length === 0} onClick={() => setOpen(true)}>Update from a device …</button>
  const share = /^[1-9][0-9]?$/.test(canary.trim()) ? Number(canary) : undefined
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await ducks.update(g.name, from || devices[0]!.name, note, share)
      setOpen(false)
      onDone()
    } catch (e) {
      setError((e as Error).message)
    }
    setBusy(false)
  }
  return (
    <form class="create confirm" onSubmit={submit} aria-label={`Update ${g.name}`}>
      <label>Device<select value={from || devices[0]!.name} onChange={(e) => setFrom(e.currentTarget.value)}>
        {devices.map((d) => <option key={d.name} value={d.name}>{d.name}{d.on ? ' (its disk is in use)' : ''}</option>)}
      </select></label>
      <label>Note<input value={note} size={28} onInput={(e) => setNote(e.currentTarget.value)} /></label>
      <label>Canaries, percent<input value={canary} size={4} placeholder="all" onInput={(e) => setCanary(e.currentTarget.value)} /></label>
      <span class="row">
        <button class="main" disabled={busy || (canary.trim() !== '' && share === undefined)}>Update</button>
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
      </span>
      {error && <p class="bad" role="alert">{error}</p>}
    </form>
  )
}
