import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'

// The files of this directory by path without extension, with the files each imports.
function graph(root: string): Map<string, string[]> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((f) => /\.tsx?$/.test(f))
  const name = (f: string) => f.replace(/\.tsx?$/, '')
  return new Map(files.map((f) => {
    const text = readFileSync(join(root, f), 'utf8')
    const found = [...text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)'(\.[^']*)'/g)].map((m) => join(dirname(f), m[1]!))
    return [name(f), found]
  }))
}

// The first circle found, as a path that ends where it begins.
function circle(imports: Map<string, string[]>): string[] | undefined {
  const done = new Set<string>()
  const follow = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const next of imports.get(file) ?? []) {
      const found = follow(next, [...path, file])
      if (found) return found
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const found = follow(file, [])
    if (found) return found
  }
  return undefined
}

it('imports in one direction only', () => {
  const imports = graph(import.meta.dirname)
  expect(imports.get('main')).toContain('app')
  expect(circle(imports)).toBeUndefined()
})

it('finds a circle', () => {
  expect(circle(new Map([['a', ['b', 'c']], ['b', ['c']], ['c', []]]))).toBeUndefined()
  expect(circle(new Map([['a', ['b']], ['b', ['c']], ['c', ['d', 'b']]]))).toEqual(['b', 'c', 'b'])
})
