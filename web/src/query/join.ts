// Which values of a line are joined, and which stand alone. In what is drawn null is a gap, and
// a line passes over undefined.

import type { Line, Values } from './data'

/** How many intervals two points of a sender may be apart to be joined: where one is missing there is a gap. */
const most = 1.5

/**
 * A list of values of a line as it is drawn: where only nulls stand between two points that are
 * about an interval of their sender apart, the line passes over them.
 *
 * The point of a column may be anywhere in it, so two points may be closer to each other than
 * their columns are, by a column less a slot. A sender that is not quite regular leaves out a
 * column now and then, without having left out a point.
 */
export function joined(l: Line, x: number[], list: Values = l.values): Values {
  const farthest = most * (l.interval ?? 0) + l.resolution - l.slot
  const out = [...list]
  let before = -1 // the last value
  let gap = true // there is a null since then, or nothing before
  for (let i = 0; i < out.length; i++) {
    const v = out[i]
    if (v === undefined) continue
    if (v === null) {
      gap = true
      continue
    }
    // Times at which only other series have values belong to the gap: else a line would go on up to them.
    const near = before >= 0 && Math.round((x[i]! - x[before]!) * 1000) <= farthest
    if (gap) out.fill(near ? undefined : null, before + 1, i)
    before = i
    gap = false
  }
  return out.fill(null, before + 1)
}

/** Where the values are, of a list as it is drawn, that no line would show: they have a gap on both sides. */
export function alone(drawn: ArrayLike<number | null | undefined>): number[] {
  const gap = (i: number) => i < 0 || i >= drawn.length || drawn[i] === null
  const out: number[] = []
  for (let i = 0; i < drawn.length; i++) {
    if (drawn[i] != null && gap(i - 1) && gap(i + 1)) out.push(i)
  }
  return out
}
