// What can stand in a lookup by tags: the collection, the tag or the value that
// the end of a text belongs to.

import { isKeyword, type Token } from './tokens'

export type WantedTag =
  | { kind: 'collection'; from: number; typed: string }
  | { kind: 'tag'; from: number; collection: string; typed: string; variable: boolean } // variable: behind a $
  | { kind: 'value'; from: number; collection: string; tag: string; typed: string }
  | { kind: 'combiner'; from: number }
  | { kind: 'condition'; from: number; words: string[] }
  | { kind: 'nothing' }

type Clause = 'from' | 'where' | 'group' | 'using' | 'metadata' | 'other'

/** The lookup that the end of a text belongs to. */
interface Place {
  clause: Clause
  collection?: string
  start: number // the first token of the clause
}

const isName = (t: Token | undefined) => t?.kind === 'name' || t?.kind === 'quoted'
const inner = (t: Token) => (t.kind === 'quoted' ? t.text.replace(/^'|(?<!\\)'$/g, '') : t.text)
const ends = ['LAST', 'AFTER', 'BEFORE', 'BETWEEN', 'TOP', 'BOTTOM', 'SHIFT', 'ALIAS']

/** Says in which clause of which lookup the end of the tokens is. */
function placeOf(tokens: Token[]): Place {
  let place: Place = { clause: 'other', start: 0 }
  let [depth, of] = [0, 0] // of brackets: now, and at FROM
  tokens.forEach((t, i) => {
    const enter = (clause: Clause) => (place = { ...place, clause, start: i + 1 })
    if (t.kind === 'operator' && '([{'.includes(t.text)) depth++
    if (t.kind === 'operator' && ')]}'.includes(t.text)) {
      depth--
      if (depth < of || t.text === '}') enter('other')
      of = Math.min(of, depth)
    }
    const before = tokens[i - 1]
    if (isFrom(t, before)) {
      place = { clause: isKeyword(before, 'EVENTS') ? 'other' : 'from', start: i + 1 }
      of = depth
    } else if (place.clause === 'from' && i === place.start && isName(t)) place.collection = inner(t)
    else if (isKeyword(t, 'SELECT', 'BUCKET')) place = { clause: 'other', start: i + 1 }
    else if (isKeyword(t, 'WHERE') && place.clause === 'from') enter('where')
    else if (isKeyword(t, 'GROUP')) enter('group')
    else if (isKeyword(t, 'USING')) enter('using')
    else if (isKeyword(t, 'METADATA')) enter('metadata')
    else if (isKeyword(t, 'AS', ...ends)) enter('other')
    else if (t.text === ',' && depth === 0 && place.clause !== 'group') place = { clause: 'other', start: i + 1 }
    else if (t.text === ',' && depth <= of && place.clause !== 'group') enter('other')
  })
  return place
}

/** IN is the older word for FROM; it may be a name as well. */
function isFrom(t: Token, before: Token | undefined): boolean {
  return isKeyword(t, 'FROM') || (t.kind === 'name' && /^in$/i.test(t.text) && (isName(before) || isKeyword(before, 'ALL')))
}

/** A tag that ends at the end of some tokens: its name as the node lists it, and how many tokens it has. */
function tagAt(tokens: Token[]): { tag: string; length: number } | undefined {
  const [namespace, colon, name] = tokens.slice(-3)
  const last = tokens.at(-1)
  if (!last || !isName(last)) return undefined
  if (tokens.length >= 3 && colon!.text === ':' && isName(namespace)) return { tag: `${listed(inner(namespace!))}:${inner(name!)}`, length: 3 }
  return { tag: inner(last).includes(':') ? `:${inner(last)}` : inner(last), length: 1 }
}

const listed = (namespace: string) => namespace.replaceAll(':', '\\:')

/** What a lookup by tags wants at the end of a text: done is what stands before the token that is typed. */
export function wantedTag(done: Token[], typing: Token | undefined, end: number): WantedTag | undefined {
  const { clause, collection, start } = placeOf(done)
  const prior = done.at(-1)
  const from = typing ? typing.from : end
  const typed = typing ? inner(typing) : ''
  if (clause === 'from' && start === done.length) return { kind: 'collection', from, typed }
  if (clause === 'using' && start === done.length) return { kind: 'combiner', from }
  if (collection === undefined) return undefined
  if (typing?.kind === 'variable') {
    return { kind: 'tag', from, collection, typed: typed.slice(1).replace(/^'/, ''), variable: true }
  }
  if (clause === 'group') {
    const wants = isKeyword(prior, 'BY') || prior?.text === ','
    return wants && !typing ? { kind: 'tag', from, collection, typed: '', variable: true } : undefined
  }
  if (clause === 'metadata') {
    return prior?.text === ':' && !typing ? { kind: 'tag', from, collection, typed: '', variable: true } : undefined
  }
  if (clause !== 'where') return undefined
  return inCondition(done.slice(start), typed, from, collection)
}

const operators = ['=', '!=', '=~', '!~']

function inCondition(condition: Token[], typed: string, from: number, collection: string): WantedTag | undefined {
  const prior = condition.at(-1)
  const tag: WantedTag = { kind: 'tag', from, collection, typed, variable: false }
  if (!prior || prior.text === '(' || isKeyword(prior, 'AND', 'OR')) return tag
  if (prior.text === ':' && condition.length > 1) {
    const namespace = condition.at(-2)!
    return { ...tag, from: namespace.from, typed: `${listed(inner(namespace))}:${typed}` }
  }
  const before = tagAt(condition.slice(0, -1))
  if (isKeyword(prior, 'NOT') && !before) return tag
  if (prior.text === '=' || prior.text === '!=' || isKeyword(prior, 'NOT', 'LIKE')) {
    const of = isKeyword(condition.at(-2), 'NOT') ? tagAt(condition.slice(0, -2)) : before
    return of && { kind: 'value', from, collection, tag: of.tag, typed }
  }
  if (operators.includes(prior.text)) return { kind: 'nothing' } // an expression
  const complete = tagAt(condition)
  const ahead = complete && condition.at(-1 - complete.length)
  const isValue = ahead && (operators.includes(ahead.text) || isKeyword(ahead, 'LIKE', 'NOT') && tagAt(condition.slice(0, -1 - complete.length)))
  if (complete && !isValue) return { kind: 'condition', from, words: ['=', '!=', 'LIKE', 'NOT LIKE', '=~', '!~', 'AND', 'OR'] }
  return undefined
}
