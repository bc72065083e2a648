import { count, moment } from '../format'
import type { Boot, Device, Group, Planned, Volume } from './client'

/** What a device reads and writes, in bytes a second. */
export interface Rate {
  read: number
  written: number
}

/** Devices as they were seen, and what each has moved since they were seen before. */
export interface Look {
  devices: Device[]
  rates: Map<string, Rate>
}

/** Compares devices with how they were. One whose session is another has no rate yet. */
export function look(devices: Device[], before?: Look): Look {
  const was = new Map(before?.devices.map((d) => [d.name, d]))
  const rates = new Map<string, Rate>()
  for (const d of devices) {
    const old = was.get(d.name)
    if (!d.on || !old?.on || d.read_bytes < old.read_bytes || d.write_bytes < old.write_bytes) continue
    const seconds = (Date.parse(d.seen_at) - Date.parse(old.seen_at)) / 1000
    const rate = seconds > 0
      ? { read: (d.read_bytes - old.read_bytes) / seconds, written: (d.write_bytes - old.write_bytes) / seconds }
      : before!.rates.get(d.name) // ducks has not looked again
    if (rate) rates.set(d.name, rate)
  }
  return { devices, rates }
}

/** The version that devices of a group get, but for canaries and those that are pinned. */
export function given(g: Group): number {
  return g.use || g.versions.at(-1)?.number || 0
}

/** What a version of a group is to its devices. */
export function marks(g: Group, version: number): string[] {
  const list = version === given(g) ? ['in use'] : []
  if (g.canary?.version === version) list.push(`tried by ${g.canary.share} %, until ${g.canary.until}`)
  if (g.withdrawn?.version === version) list.push('taken back')
  return list
}

/** Volumes with their groups. One that may not be looked at has its groups all the same. */
export function tree(volumes: Volume[] | undefined, groups: Group[]): { name: string; volume?: Volume; groups: Group[] }[] {
  const names = new Set([...(volumes ?? []).map((v) => v.name), ...groups.map((g) => g.volume)])
  return [...names].sort().map((name) => ({ name, volume: volumes?.find((v) => v.name === name), groups: groups.filter((g) => g.volume === name) }))
}

/** Devices by group, both by name. */
export function byGroup(devices: Device[]): [string, Device[]][] {
  const names = [...new Set(devices.map((d) => d.group))].sort()
  return names.map((name) => [name, devices.filter((d) => d.group === name).sort((a, b) => (a.name < b.name ? -1 : 1))])
}

/** What a device gets when it boots next, in words. */
export function nextText(p: Planned | undefined): string {
  if (!p) return '–'
  return p.fresh ? `version ${p.version}, anew` : 'goes on'
}

/** A part of a boot: from one stage to the next. */
export interface Part {
  stage: string // that ends it
  from: number // s
  to: number
}

export function parts(boot: Boot): Part[] {
  return boot.stages.map(({ stage, seconds }, i) => ({ stage, from: i ? boot.stages[i - 1]!.seconds : 0, to: seconds }))
}

/** A date to the second. */
export function when(date: string, utc: boolean): string {
  return moment(Math.floor(Date.parse(date) / 1000) * 1000, utc)
}

/** So many devices, in words. */
export function devicesText(n: number): string {
  return n === 1 ? '1 device' : `${count(n)} devices`
}

/** The name of a device that an alert is about; undefined for other things. */
export function deviceOf(object: string): string | undefined {
  return object.startsWith('device ') ? object.slice('device '.length) : undefined
}

/** The queries of what a device moves, in the store of its ducks. */
export function trafficQuery(device: string): string {
  const of = (figure: string, as: string) => `devices.'${device.replace(/['\\]/g, '\\$&')}'.${figure} BUCKET ducks AS ${as} METADATA {unit: 'B/s'}`
  return `SELECT ${of('read_bytes', 'read')}, ${of('write_bytes', 'written')} LAST 10m`
}
