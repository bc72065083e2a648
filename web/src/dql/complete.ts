// Completion: what can stand at the cursor, from the text before it, and the
// names that the node knows.

import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { api, type Fn, type TagList } from '../api'
import { count } from '../format'
import { wantedTag, type WantedTag } from './lookup'
import { isKeyword, keywords, quoted, tagText, tokenize, type Token } from './tokens'

/** What can stand at the end of a text. */
export type Wanted =
  | WantedTag
  | { kind: 'bucket'; from: number }
  | { kind: 'metric'; from: number; parts: string[]; functions: boolean } // parts before the one that is typed
  | { kind: 'span'; from: number }
  | { kind: 'keyword'; from: number; words: string[] }
  | { kind: 'nothing' }

const afterName = ['BUCKET', 'FROM', 'WHERE', 'GROUP BY', 'AS', 'LAST', 'BETWEEN', 'AFTER', 'BEFORE', 'SHIFT', 'METADATA', 'ALIAS', 'TOP', 'BOTTOM', 'BY', 'AND', 'FOR', 'AGO', 'ON']

/** Says what can stand where the cursor is, with the text before it. */
export function wanted(before: string): Wanted {
  const tokens = tokenize(before)
  const last = tokens.at(-1)
  if (last?.kind === 'comment' && !before.slice(last.to).includes('\n')) return { kind: 'nothing' }
  const typing = last && last.to === before.length && last.kind !== 'operator' ? last : undefined
  if (typing?.kind === 'date') return { kind: 'nothing' }
  const done = typing ? tokens.slice(0, -1) : tokens
  const tag = wantedTag(done, typing, before.length)
  if (tag) return tag
  if (typing?.kind === 'variable') return { kind: 'nothing' }
  const from = typing ? typing.from : before.length
  const prior = done.at(-1)
  if (isKeyword(prior, 'BUCKET') || (isKeyword(prior, 'FROM') && isKeyword(done.at(-2), 'EVENTS'))) return { kind: 'bucket', from }
  if (typing?.kind === 'number') return { kind: 'nothing' }
  if (prior?.text === '.') {
    const parts = partsBefore(done)
    return parts ? { kind: 'metric', from, parts, functions: false } : { kind: 'nothing' }
  }
  if (isKeyword(prior, 'LAST', 'FOR')) return { kind: 'span', from }
  if (!prior) return { kind: 'keyword', from, words: ['SELECT', 'EXPLAIN'] }
  if (isKeyword(prior, 'EXPLAIN')) return { kind: 'keyword', from, words: ['SELECT'] }
  if (isKeyword(prior, 'SELECT', 'ALIAS') || (prior.kind === 'operator' && '(,+-*/'.includes(prior.text) && !isPattern(done))) {
    return { kind: 'metric', from, parts: [], functions: true }
  }
  return { kind: 'keyword', from, words: prior.kind === 'operator' && prior.text !== ')' && !isPattern(done) ? keywords : afterName }
}

/** Whether the last token is the * of a pattern rather than that of a product. */
function isPattern(tokens: Token[]): boolean {
  const [before, star] = [tokens.at(-2), tokens.at(-1)]
  return star?.text === '*' && (before?.text === '.' || isKeyword(before, 'SELECT') || before?.text === '(' || before?.text === ',')
}

/** The parts of a metric that ends with a dot. */
function partsBefore(tokens: Token[]): string[] | undefined {
  const parts: string[] = []
  for (let i = tokens.length - 1; i > 0 && tokens[i]!.text === '.'; i -= 2) {
    const t = tokens[i - 1]!
    if (t.kind === 'quoted') parts.unshift(t.text.slice(1, -1))
    else if (t.kind === 'name' || t.kind === 'keyword' || t.text === '*' || t.kind === 'number') parts.unshift(t.text)
    else return undefined
  }
  return parts
}

/** Where the metric of a selector is looked for: among the stored ones of a bucket, or the names in a collection. */
export interface Source {
  name: string
  lookup: boolean
}

/** The source of the selector at the end of before, where after names it. */
export function sourceAfter(after: string): Source | undefined {
  const tokens = tokenize(after)
  for (let i = 0; i < tokens.length; i++) {
    const t = tokens[i]!
    if (isKeyword(t, 'BUCKET', 'FROM')) {
      const name = tokens[i + 1]
      return name && { name: name.kind === 'quoted' ? name.text.slice(1, -1) : name.text, lookup: isKeyword(t, 'FROM') }
    }
    if (t.kind !== 'name' && t.kind !== 'quoted' && t.text !== '.' && t.text !== '*') return undefined
  }
  return undefined
}

const forget = 15_000 // ms that lists are kept
const mostLists = 100
const mostTags = 200 // of a list: with more, each letter asks again

class Names {
  private lists = new Map<string, { at: number; list: Promise<unknown> }>()

  private keep<T>(key: string, load: () => Promise<T>): Promise<T> {
    const known = this.lists.get(key)
    if (known && performance.now() - known.at < forget) return known.list as Promise<T>
    const list = load()
    if (this.lists.size >= mostLists) this.lists.delete(this.lists.keys().next().value!)
    this.lists.delete(key)
    this.lists.set(key, { at: performance.now(), list })
    list.catch(() => this.lists.delete(key))
    return list
  }

  buckets = () => this.keep('buckets', () => api.buckets())
  functions = (): Promise<Fn[]> => this.keep('functions', () => api.functions())
  collections = (prefix: string) => this.keep(`collections ${prefix}`, () => api.tagCollections({ prefix, limit: mostTags }))
  tags = (collection: string, prefix: string) => this.keep(`tags ${JSON.stringify([collection, prefix])}`, () => api.tagNames(collection, { prefix, limit: mostTags }))
  values = (collection: string, tag: string, prefix: string) =>
    this.keep(`values ${JSON.stringify([collection, tag, prefix])}`, () => api.tagValues(collection, tag, { prefix, limit: mostTags }))
  below = ({ name, lookup }: Source, key: string) =>
    this.keep(`below ${JSON.stringify([name, lookup, key])}`, () => (lookup ? api.belowName : api.below)(name, key, 1))

  /** The names that can follow parts in a source; a pattern looks into every branch, up to a bound. */
  async next(source: Source, parts: string[]): Promise<string[]> {
    let keys = ['']
    for (let depth = 0; depth < parts.length; depth++) {
      const lists = await Promise.all(keys.slice(0, 20).map((key) => this.below(source, key)))
      keys = lists.flat().filter((e) => e.parts.length === depth + 1 && (parts[depth] === '*' || e.parts[depth] === parts[depth])).map((e) => e.key)
    }
    const lists = await Promise.all(keys.slice(0, 20).map((key) => this.below(source, key)))
    const found = lists.flat().filter((e) => e.parts.length === parts.length + 1).map((e) => e.parts[parts.length]!)
    return [...new Set(found)].sort()
  }
}

export const names = new Names()

/** The source of completions of the editor. */
export async function completions(context: CompletionContext): Promise<CompletionResult | null> {
  const text = context.state.doc.toString()
  const want = wanted(text.slice(0, context.pos))
  if (want.kind === 'nothing') return null
  if ((want.kind === 'keyword' || want.kind === 'condition') && want.from === context.pos && !context.explicit) return null
  const { options, more } = await optionsFor(want, text.slice(context.pos)).catch(() => ({ options: [], more: false }))
  if (!options.length || context.aborted) return null
  const bare = !text.slice(want.from, context.pos).includes("'")
  const whole = options.map((o) => (o.label.includes("'") && !o.apply ? quotedOption(o, bare) : o))
  return { from: want.from, options: whole, validFor: more ? undefined : /^(?:\$?[\w@:*-]*|\$?'(?:[^'\\]|\\.)*)$/ }
}

/** An option with quotes: what is typed without any finds it, too, and the editor may have closed them already. */
function quotedOption(o: Completion, bare: boolean): Completion {
  const whole = o.label
  return {
    ...o, displayLabel: whole, label: bare ? whole.replaceAll("'", '') : whole,
    apply: (view, _completion, from, to) => {
      const past = whole.endsWith("'") && view.state.sliceDoc(to, to + 1) === "'" ? to + 1 : to
      view.dispatch({ changes: { from, to: past, insert: whole }, selection: { anchor: from + whole.length } })
    },
  }
}

interface Options {
  options: Completion[]
  more: boolean // the node knows others
}

async function optionsFor(want: Wanted, after: string): Promise<Options> {
  switch (want.kind) {
    case 'tag': {
      const list = await names.tags(want.collection, want.typed)
      return listed(list, (text) => (want.variable ? variable(text) : tagText(text)), 'property')
    }
    case 'collection':
      return collectionOptions(want.typed)
    case 'value':
      return listed(await names.values(want.collection, want.tag, want.typed), quoted, 'text')
    default:
      return { options: await namesFor(want, after), more: false }
  }
}

/** Collections with tags, and the buckets without. */
async function collectionOptions(typed: string): Promise<Options> {
  const [found, buckets] = await Promise.all([names.collections(typed), names.buckets()])
  const tagged = new Set(found.list.map((c) => c.text))
  const { options, more } = listed(found, quoted, 'class')
  for (const o of options) o.boost = 1
  for (const b of buckets) {
    if (!tagged.has(b.name) && b.name.startsWith(typed)) options.push({ label: quoted(b.name), detail: more ? 'bucket' : 'no tags', type: 'class', boost: 0 })
  }
  return { options, more }
}

function listed({ list, more }: TagList, text: (name: string) => string, type: string): Options {
  return { options: list.map((e) => ({ label: text(e.text), detail: `${count(e.series)} series`, type })), more }
}

/** A tag where its value is wanted. */
function variable(name: string): string {
  return `$${tagText(name)}`
}

async function namesFor(want: Wanted, after: string): Promise<Completion[]> {
  switch (want.kind) {
    case 'combiner':
      return [...new Set((await names.functions()).filter((f) => f.signature.join() === 'metric*').map((f) => f.name))].map((label) => ({ label, type: 'function' }))
    case 'condition':
      return want.words.map((label) => ({ label, type: 'keyword' }))
    case 'bucket':
      return (await names.buckets()).map((b) => ({ label: quoted(b.name), detail: `every ${b.resolution} ms`, type: 'class' }))
    case 'span':
      return ['1m', '5m', '15m', '1h', '6h', '1d', '1w'].map((label) => ({ label }))
    case 'keyword':
      return want.words.map((label) => ({ label, type: 'keyword' }))
    case 'metric': {
      const [parts, functions] = await Promise.all([metricParts(want.parts, sourceAfter(after)), want.functions ? functionOptions() : []])
      return [...parts, ...functions]
    }
    default:
      return []
  }
}

async function metricParts(parts: string[], source: Source | undefined): Promise<Completion[]> {
  const sources = source ? [source] : (await names.buckets()).map(({ name }) => ({ name, lookup: false }))
  const found = new Map<string, string[]>()
  await Promise.all(sources.slice(0, 16).map(async (s) => {
    for (const part of await names.next(s, parts).catch(() => [])) found.set(part, [...(found.get(part) ?? []), s.name])
  }))
  const list: Completion[] = [...found].map(([part, of]) => ({ label: quotedPart(part, parts.length > 0), detail: of.join(', '), type: 'property', boost: 2 }))
  if (list.length > 1) list.push({ label: '*', detail: 'every part here', boost: -1 })
  return list
}

/** A part behind a dot needs fewer quotes than the first one. */
function quotedPart(part: string, behindDot: boolean): string {
  return behindDot && /^[A-Za-z0-9_@-]+$/.test(part) ? part : quoted(part)
}

async function functionOptions(): Promise<Completion[]> {
  const byName = new Map<string, Fn[]>()
  for (const f of await names.functions()) byName.set(f.name, [...(byName.get(f.name) ?? []), f])
  return [...byName].map(([name, of]) => ({
    label: name, type: 'function', detail: of[0]!.desc.replace(/^\w+/, ''), info: of.map((f) => `${f.desc}: ${f.help}`).join('\n'),
    apply: (view, _completion, from, to) => {
      view.dispatch({ changes: { from, to, insert: `${name}()` }, selection: { anchor: from + name.length + 1 } })
    },
  }))
}
