// Lookups by tags, as the completion, the tag browser and the page of
// cardinality make them.

import { api } from '../api'
import { quoted, tagText } from '../dql/tokens'

/** How many collections are looked at: each is asked for by itself. */
const mostCollections = 50

/** A condition that a click makes: a tag with a value, or with any. */
export interface Condition {
  tag: string // as the node lists it
  value?: string
  not?: boolean
}

/** Conditions behind WHERE. */
export function whereText(conditions: Condition[]): string {
  return conditions.map(({ tag, value, not }) => {
    const text = tagText(tag)
    if (value === undefined) return not ? `NOT ${text}` : text
    return `${text} ${not ? '!=' : '='} ${quoted(value)}`
  }).join(' AND ')
}

/** A query of the series of a collection for which conditions hold. */
export function lookupText(collection: string, conditions: Condition[]): string {
  return `SELECT ALL FROM ${quoted(collection)}${conditions.length ? ` WHERE ${whereText(conditions)}` : ''}`
}

export async function collectionsOf(signal?: AbortSignal): Promise<string[]> {
  return (await api.collections(signal)).slice(0, mostCollections)
}

/** How many series of a collection have tags, and meet a condition. */
export async function matching(collection: string, where: string, signal?: AbortSignal): Promise<number> {
  return (await api.tagNames(collection, { where, namespace: '', limit: 1 }, signal)).series
}

/** The collections that have series with tags, with their number, and the buckets without. */
export async function countedCollections(signal?: AbortSignal): Promise<{ name: string; series: number }[]> {
  return Promise.all((await collectionsOf(signal)).map(async (name) => ({ name, series: await matching(name, '', signal) })))
}
