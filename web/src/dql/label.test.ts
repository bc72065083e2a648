import { expect, it } from 'vitest'
import { withoutStars } from './label'

it.each([
  ["max('web'.*.'a*b'.* BUCKET 'b')", ['eu', 'x'], "max('web'.'eu'.'a*b'.'x' BUCKET 'b')"],
  ["'x' BUCKET 'b'", [], "'x' BUCKET 'b'"],
  ['load', ['web1', 'eth0'], 'load (web1, eth0)'],
  ['a.*', [], 'a.*'],
])('%s', (name, parts, want) => expect(withoutStars(name, parts)).toBe(want))
