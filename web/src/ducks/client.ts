// Requests to the ducks that the node knows, which lets people in by itself: by a session of a user, or by a token.

import { useEffect, useState } from 'preact/hooks'
import { Problem, request } from '../api'

export interface Version {
  number: number
  from: string // what it was taken from
  author: string
  note: string
  at: string // a date, as all below
  changed_bytes: number
  tested?: string[] // devices that were up with it
}

/** How much a network has, or may have: 0 or nothing is no limit. */
export interface Counts {
  volumes?: number
  groups?: number
  devices?: number
  disks?: number
  menus?: number
  space?: number // bytes
}

/** What owns images and devices. */
export interface Network {
  name: string
  client: string // that owns it
  limits: Counts
  has: Counts
}

export interface Volume {
  name: string
  network: string
  size: number // bytes
  versions: Version[]
}

export interface Group {
  name: string
  network: string
  volume: string
  versions: Version[]
  use: number // 0: the newest
  canary?: { version: number; share: number; until: string; begun: Record<string, string> }
  withdrawn?: { version: number; why: string; at: string }
  menu?: string
}

export type Mode = 'volatile' | 'persistent' | 'until'

export interface Device {
  name: string
  mac: string
  group: string
  network: string // that of its group
  mode: Mode
  until?: string
  pin?: number
  version?: number // that its image began with
  afresh?: boolean // it begins anew when it boots next, whatever its mode
  limit?: number // bits a second
  space?: number // bytes that its image may take
  iqn: string
  portal: string
  initiator: string
  on: boolean // it has a session
  read_bytes: number // in that session
  write_bytes: number
  seen_at: string // when that was so
  stage?: string // that its last boot has reached
  stage_at?: string
  lacks?: string // the boot loader that it was to load and that is not there
}

/** What a device gets when it boots next. */
export interface Planned {
  device: string
  group: string
  version: number
  fresh: boolean // it gets a new clone; else it goes on with what it has
  why: string
  loses_bytes: number
}

export interface Boot {
  begun: string
  stages: { stage: string; seconds: number }[] // since it began
}

export interface Alert {
  object: string // what it is about: pool, or a kind and a name
  text: string
  since?: string
  remedy: string
}

/** A machine that waits to be added. */
export interface Unknown {
  mac: string
  address: string
  first: string
  last: string
}

/** How the files of a version differ from those of the one before. */
export interface Changes {
  partitions: { number: number; kind?: string; files: number; error?: string }[]
  added: number
  removed: number
  changed: number
  files: { partition: number; path: string; what: 'added' | 'removed' | 'changed'; bytes_before: number; bytes_after: number }[] // the first ones
}

export interface Space {
  total_bytes: number
  free_bytes: number
  reserve_bytes: number // of what is free: only running devices take it
}

/** What changes of a device. */
export interface Change {
  group?: string
  mode?: Mode
  until?: string
  pin?: number
  limit?: number
  space?: number
  afresh?: boolean
}

const kept = 'dalmatiner.ducks'

/** What lets this tab in. It is gone with the tab. */
class Entry {
  private listeners = new Set<() => void>()

  get secret(): string {
    try {
      return sessionStorage.getItem(kept) ?? ''
    } catch {
      return this.memory
    }
  }

  private memory = ''

  set(secret: string): void {
    this.memory = secret
    try {
      if (secret) sessionStorage.setItem(kept, secret)
      else sessionStorage.removeItem(kept)
    } catch {
      // forbidden: it lasts until the page is loaded anew
    }
    for (const listener of this.listeners) listener()
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

const entry = new Entry()

/** Whether something lets this tab in. */
export function useEntry(): boolean {
  const [inside, set] = useState(entry.secret !== '')
  useEffect(() => entry.subscribe(() => set(entry.secret !== '')), [])
  return inside
}

async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, secret = entry.secret): Promise<T> {
  const headers: Record<string, string> = { 'X-Dalmatiner': '1', ...(secret && { Authorization: `Bearer ${secret}` }) }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  try {
    return (await request<T>(`./ducks/api/v1/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal })).value
  } catch (error) {
    // A session has ended, or a token was taken away.
    if (error instanceof Problem && error.status === 401 && secret === entry.secret) entry.set('')
    throw error
  }
}

const get = <T,>(path: string, signal?: AbortSignal) => ask<T>('GET', path, undefined, signal)
const named = (kind: string, name: string, behind = '') => `${kind}/${encodeURIComponent(name)}${behind && `/${behind}`}`

export const ducks = {
  /** Begins a session of a user; without a name, the password is a token. */
  login: async (name: string, password: string) => {
    const token = password.trim()
    if (name) entry.set((await ask<{ session: string }>('POST', 'login', { name, password })).session)
    else {
      await ask('GET', 'devices', undefined, undefined, token) // whether it is one
      entry.set(token)
    }
  },
  logout: async () => {
    await ask('POST', 'logout', {}).catch(() => undefined) // of a token there is no session to end
    entry.set('')
  },
  devices: (signal?: AbortSignal) => get<Device[]>('devices', signal),
  device: (name: string, signal?: AbortSignal) => get<Device>(named('devices', name), signal),
  boots: (name: string, signal?: AbortSignal) => get<Boot[]>(named('devices', name, 'boots'), signal),
  plan: (signal?: AbortSignal) => get<Planned[]>('plan', signal),
  groups: (signal?: AbortSignal) => get<Group[]>('groups', signal),
  networks: (signal?: AbortSignal) => get<Network[]>('networks', signal),
  volumes: (signal?: AbortSignal) => get<Volume[]>('volumes', signal),
  files: (kind: 'groups' | 'volumes', name: string, version: number, signal?: AbortSignal) =>
    get<Changes>(named(kind, name, `versions/${version}/files`), signal),
  alerts: (signal?: AbortSignal) => get<Alert[]>('alerts', signal),
  unknown: (signal?: AbortSignal) => get<Unknown[]>('unknown', signal),
  space: (signal?: AbortSignal) => get<Space>('pool', signal),
  add: (mac: string, name: string, group: string, mode: Mode) => ask('POST', 'devices', { mac, name, group, mode }),
  change: (name: string, change: Change) => ask('PATCH', named('devices', name), change),
  wake: (name: string) => ask('POST', named('devices', name, 'wake')),
  update: (group: string, from: string, note: string, canary?: number) =>
    ask<Version>('POST', named('groups', group, 'update'), { from, note, ...(canary && { canary: { share: canary } }) }),
  release: (group: string) => ask('POST', named('groups', group, 'release')),
  rollback: (group: string, version: number) => ask('POST', named('groups', group, 'rollback'), { version }),
  promote: (group: string, note: string) => ask<Version>('POST', named('groups', group, 'promote'), { note }),
}
