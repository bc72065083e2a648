// All series of a pattern have one name, that of the pattern. To tell them
// apart the page asks for the parts that its stars stand for, as metadata.

import { isKeyword, tokenize, type Token } from './tokens'

const key = (n: number) => `part${n}`

/** The query with the parts of its patterns as metadata, undefined when it has no pattern. */
export function withParts(query: string): string | undefined {
  const tokens = tokenize(query).filter((t) => t.kind !== 'comment')
  const inserts: { at: number; text: string }[] = []
  for (const field of fields(tokens)) {
    const stars = firstStars(field)
    if (!stars.length) continue
    const entries = stars.map((n) => `${key(n)}: $${n}`).join(', ')
    const meta = field.findIndex((t) => isKeyword(t, 'METADATA'))
    if (meta < 0) inserts.push({ at: field.at(-1)!.to, text: ` METADATA {${entries}}` })
    else if (field[meta + 1]?.text === '{') inserts.push({ at: field[meta + 1]!.to, text: field[meta + 2]?.text === '}' ? entries : `${entries}, ` })
  }
  if (!inserts.length) return undefined
  return inserts.reduceRight((text, i) => text.slice(0, i.at) + i.text + text.slice(i.at), query)
}

/** The tokens of every field of SELECT. */
function fields(tokens: Token[]): Token[][] {
  const begin = tokens.findIndex((t) => isKeyword(t, 'SELECT')) + 1
  const out: Token[][] = [[]]
  let depth = 0
  for (const t of begin > 0 ? tokens.slice(begin) : []) {
    if (t.kind === 'operator' && '([{'.includes(t.text)) depth++
    if (t.kind === 'operator' && ')]}'.includes(t.text)) depth--
    if (depth === 0 && isKeyword(t, 'ALIAS', 'LAST', 'AFTER', 'BEFORE', 'BETWEEN', 'TOP', 'BOTTOM')) break
    if (depth === 0 && t.text === ',') out.push([])
    else out.at(-1)!.push(t)
  }
  return out.filter((f) => f.length > 0)
}

/** The numbers of the parts that are stars in the first selector of a field. */
function firstStars(field: Token[]): number[] {
  const bucket = field.findIndex((t) => isKeyword(t, 'BUCKET'))
  if (bucket < 0) return []
  let begin = bucket - 1
  while (begin >= 2 && field[begin - 1]!.text === '.') begin -= 2
  const parts = field.slice(begin, bucket).filter((_, i) => i % 2 === 0)
  return parts.flatMap((t, i) => (t.text === '*' ? [i + 1] : []))
}

/** A name with the parts in place of its stars. */
export function withoutStars(name: string, metadata: Record<string, unknown> | undefined): string {
  const parts = Object.entries(metadata ?? {}).flatMap(([k, v]) => {
    const n = /^part(\d+)$/.exec(k)
    return n && typeof v === 'string' ? [[Number(n[1]), v] as const] : []
  }).sort((a, b) => a[0] - b[0])
  let [out, at] = ['', 0]
  for (const t of tokenize(name)) {
    if (t.text !== '*' || !parts.length) continue
    out += `${name.slice(at, t.from)}'${parts.shift()![1]}'`
    at = t.to
  }
  return out + name.slice(at)
}

/** Whether some series cannot be told apart by their names. */
export function ambiguous(names: string[]): boolean {
  return new Set(names).size < names.length
}
