// The tokens of DQL, as the server cuts them. Unlike the server this never
// fails: what is no token is of kind 'other'.

export type Kind = 'keyword' | 'function' | 'name' | 'quoted' | 'date' | 'number' | 'variable' | 'operator' | 'comment' | 'other'

export interface Token {
  kind: Kind
  from: number
  to: number
  text: string
}

export const keywords = [
  'SELECT', 'EXPLAIN', 'BUCKET', 'FROM', 'WHERE', 'LAST', 'AFTER', 'BEFORE', 'BETWEEN', 'FOR', 'AND', 'OR', 'NOT', 'NOW', 'AGO', 'AS',
  'ALIAS', 'METADATA', 'SHIFT', 'BY', 'TOP', 'BOTTOM', 'EVENTS', 'ALL', 'GROUP', 'USING', 'LIKE', 'ON',
]
const known = new Set(keywords)

const word = /[A-Za-z][A-Za-z0-9_@-]*/y
const part = /[A-Za-z0-9_@-]+/y
const rules: [Kind, RegExp][] = [
  ['comment', /%[^\n]*/y],
  ['quoted', /'(?:[^'\\]|\\[^])*'?/y],
  ['date', /"(?:[^"\\]|\\[^])*"?/y],
  ['variable', /\$(?:'(?:[^'\\]|\\[^])*'?|[A-Za-z0-9_@:-]*)/y],
  ['number', /\d+(?:\.\d+(?:[eE][+-]?\d+)?)?(?:ms|mo|[smhdwy])?/y],
  ['operator', /==|>=|=<|~=|=~|!=|!~|[=<>(),.*/:[\]{}+-]/y],
]

function match(rule: RegExp, text: string, at: number): string {
  rule.lastIndex = at
  return rule.exec(text)?.[0] ?? ''
}

/** Cuts a query into tokens; blanks are left out. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  const add = (kind: Kind, from: number, found: string) => tokens.push({ kind, from, to: from + found.length, text: found })
  for (let at = 0; at < text.length;) {
    if (text.charCodeAt(at) <= 32) {
      at++
      continue
    }
    const last = tokens.at(-1)
    const afterDot = last?.kind === 'operator' && last.text === '.' && last.to === at
    let found = afterDot ? match(part, text, at) : match(word, text, at)
    if (found) {
      add(afterDot ? 'name' : wordKind(text, at + found.length, found), at, found)
      at += found.length
      continue
    }
    const rule = rules.find(([, r]) => (found = match(r, text, at)) !== '')
    add(rule ? rule[0] : 'other', at, found || text[at]!)
    at += found.length || 1
  }
  return tokens
}

function wordKind(text: string, end: number, found: string): Kind {
  if (/^\s*\(/.test(text.slice(end, end + 20)) && !['AND', 'OR', 'NOT', 'WHERE', 'SELECT'].includes(found.toUpperCase())) return 'function'
  return known.has(found.toUpperCase()) ? 'keyword' : 'name'
}

/** Reports whether a token is one of the keywords. */
export function isKeyword(token: Token | undefined, ...words: string[]): boolean {
  return token?.kind === 'keyword' && words.includes(token.text.toUpperCase())
}

/** A tag as a query writes it, of its name as the node lists it: the first colon that is not escaped ends the namespace. */
export function tagText(name: string): string {
  const parts = /^((?:[^\\:]|\\[^])*):([^]*)$/.exec(name)
  if (!parts) return quoted(name)
  const namespace = parts[1]!.replaceAll('\\:', ':')
  return namespace ? `${quoted(namespace)}:${quoted(parts[2]!)}` : quoted(parts[2]!)
}

/** Quotes a name where it needs it: plain words stand as they are. */
export function quoted(name: string): string {
  return /^[A-Za-z][A-Za-z0-9_@-]*$/.test(name) && !known.has(name.toUpperCase()) ? name : `'${name}'`
}
