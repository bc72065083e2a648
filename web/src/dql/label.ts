// All series of a pattern have one name, that of the pattern. What its stars
// stand for tells them apart.

import { tokenize } from './tokens'

/** A name with the parts in place of its stars; behind it where it has no stars, as with AS. */
export function withoutStars(name: string, parts: string[]): string {
  const rest = [...parts]
  let [out, at] = ['', 0]
  for (const t of tokenize(name)) {
    if (t.text !== '*' || !rest.length) continue
    out += `${name.slice(at, t.from)}'${rest.shift()!}'`
    at = t.to
  }
  out += name.slice(at)
  return rest.length ? `${out} (${rest.join(', ')})` : out
}
