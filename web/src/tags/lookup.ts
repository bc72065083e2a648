// Lookups by tags, as the completion, the tag browser and the page of
// cardinality make them.

import { api } from '../api'
import { quoted, tagText } from '../dql/tokens'

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

/** How many series of a collection have tags, and meet a condition. */
export async function matching(collection: string, where: string, signal?: AbortSignal): Promise<number> {
  return (await api.tagNames(collection, { where, namespace: '', limit: 1 }, signal)).series
}

/** The largest collections of series with tags, so many at most, the largest first. */
export async function largestCollections(most: number): Promise<string[]> {
  const { list } = await api.tagCollections({ limit: 100_000 })
  return list.sort((a, b) => b.series - a.series).slice(0, most).map((c) => c.text)
}
