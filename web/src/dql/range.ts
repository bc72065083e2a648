// The time range of a query, read from its text and written into it: the text
// is the only place where the range stands.

import { isKeyword, tokenize, type Token } from './tokens'

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

const spanForm = /^(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?(?:\d+ms)?$/

/** A span of the language such as 90m or 1h30m in ms, undefined when it is none. */
export function spanMs(text: string): number | undefined {
  if (!text || !spanForm.test(text)) return undefined
  let ms = 0
  for (const [, n, unit] of text.matchAll(/(\d+)([a-z]+)/g)) ms += Number(n) * unitMs[unit!]!
  return ms
}

/** The shortest text of a span. In a time zone days have no fixed length. */
export function spanText(ms: number, zoned = false): string {
  for (const unit of zoned ? ['h', 'm', 's'] : ['w', 'd', 'h', 'm', 's']) {
    if (ms >= unitMs[unit]! && ms % unitMs[unit]! === 0) return `${ms / unitMs[unit]!}${unit}`
  }
  return `${Math.max(1, Math.round(ms))}ms`
}

export type Range =
  | { kind: 'last'; span: number } // ms
  | { kind: 'between'; from: number; to: number } // unix ms
  | { kind: 'other' }

export interface Place {
  from: number // of the clause in the text
  to: number
  range: Range
  zoned: boolean // TZ follows: dates without a zone are in that one, and days differ in length
}

/** Finds the clause of the time range. */
export function findRange(text: string): Place | undefined {
  const tokens = tokenize(text).filter((t) => t.kind !== 'comment')
  let depth = 0
  for (let i = 0; i < tokens.length; i++) {
    const t = tokens[i]!
    if (t.kind === 'operator' && '([{'.includes(t.text)) depth++
    if (t.kind === 'operator' && ')]}'.includes(t.text)) depth--
    if (depth === 0 && isKeyword(t, 'LAST', 'AFTER', 'BEFORE', 'BETWEEN')) {
      let end = i + 1
      while (end < tokens.length && !isKeyword(tokens[end], 'TOP', 'BOTTOM', 'ALIAS') && !isZone(tokens[end])) end++
      const clause = tokens.slice(i, end)
      const zoned = isZone(tokens[end])
      return { from: t.from, to: tokens[end - 1]!.to, range: zoned && clause.some(isLocal) ? { kind: 'other' } : read(clause), zoned }
    }
  }
  return undefined
}

/** TZ, which is a keyword only behind a range. */
function isZone(t: Token | undefined): boolean {
  return t?.kind === 'name' && t.text.toUpperCase() === 'TZ'
}

/** Whether what a token stands for depends on the time zone of the query. */
function isLocal(t: Token): boolean {
  return (t.kind === 'date' && !t.text.endsWith('Z"')) || (t.kind === 'number' && /[dw]$/.test(t.text)) || (t.kind === 'name' && /^[dw]\b/.test(t.text))
}

function read(clause: Token[]): Range {
  const first = clause[0]
  const rest = clause.slice(1)
  if (isKeyword(first, 'LAST')) {
    const span = spanMs(rest.map((t) => t.text).join(''))
    return span ? { kind: 'last', span } : { kind: 'other' }
  }
  if (isKeyword(first, 'BETWEEN') && rest.length === 3 && isKeyword(rest[1], 'AND')) {
    const ends = [instant(rest[0]!), instant(rest[2]!)]
    if (ends[0] !== undefined && ends[1] !== undefined) {
      return { kind: 'between', from: Math.min(ends[0], ends[1]), to: Math.max(ends[0], ends[1]) }
    }
  }
  const span = rest.length >= 3 && isKeyword(rest[1], 'FOR') ? spanMs(rest.slice(2).map((t) => t.text).join('')) : undefined
  const at = rest[0] ? instant(rest[0]) : undefined
  if (span === undefined || at === undefined) return { kind: 'other' }
  return isKeyword(first, 'AFTER') ? { kind: 'between', from: at, to: at + span } : { kind: 'between', from: at - span, to: at }
}

function instant(t: Token): number | undefined {
  if (t.kind === 'number' && /^\d+$/.test(t.text)) return Number(t.text)
  const found = t.kind === 'date' ? /^"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)Z?)?"$/.exec(t.text) : null
  if (!found) return undefined
  const ms = Date.parse(`${found[1]}T${found[2] ?? '00:00'}Z`)
  return Number.isNaN(ms) ? undefined : ms
}

/** A range as a clause. Dates have a precision of a second and are in UTC, and say so before a TZ. */
export function rangeText(range: Range, zoned = false): string {
  if (range.kind === 'last') return `LAST ${spanText(range.span, zoned)}`
  if (range.kind === 'other') return ''
  return `BETWEEN ${instantText(range.from, zoned)} AND ${instantText(range.to, zoned)}`
}

function instantText(ms: number, zoned: boolean): string {
  const whole = Math.round(ms)
  const text = new Date(whole).toISOString().slice(0, 19)
  return whole % 1000 ? String(whole) : zoned ? `"${text}Z"` : `"${text.replace('T', ' ')}"`
}

/** Puts a range in the place of that of the query, or at its end. */
export function withRange(text: string, range: Range): string {
  const place = findRange(text)
  const clause = rangeText(range, place?.zoned)
  if (place) return text.slice(0, place.from) + clause + text.slice(place.to)
  const top = tokenize(text).find((t) => isKeyword(t, 'TOP', 'BOTTOM'))
  if (top) return `${text.slice(0, top.from)}${clause} ${text.slice(top.from)}`
  // A comment at the end would swallow the clause.
  const gap = tokenize(text).at(-1)?.kind === 'comment' ? '\n' : ' '
  return text.trimEnd() + gap + clause
}
