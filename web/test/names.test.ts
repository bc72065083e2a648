// What belongs to a metric is found in the tree and by completion, whatever tags its bucket has.

import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node('--set', 'graphite.addr=127.0.0.1:0')
let browser: Browser
let tab: Tab
const popup = () => tab.page.locator('.cm-tooltip-autocomplete')
const offered = () => popup().locator('.cm-completionLabel').allTextContents()
const tree = () => tab.page.locator('.tree code').allTextContents()
const stored = async (): Promise<string[]> => (await fetch(`${node.url}buckets/graphite`)).json()

/** README's two lines, a third machine, and parts that are short, long, words of the language and numbers. */
async function send(): Promise<void> {
  const now = Math.floor(Date.now() / 1000)
  const names = ['servers.web1.load', 'servers.web1.mem;dc=eu', 'servers.web2.load', 'servers.db1.load', 'odd.last', 'odd.10', 'odd.1h30m', 'odd.a:b', 'odd.and', 'odd.-x', 'zz']
  await node.lines(names.map((name) => `${name} 1 ${now}\n`).join(''))
  await until('all are there', async () => (await stored().catch(() => [])).length === names.length)
}

/** README's import, and one of every metric of a bucket. */
async function tag(): Promise<void> {
  const lines = [['web1', 'eu'], ['web2', 'us']].map(([host, dc]) => JSON.stringify({ bucket: 'graphite', metric: ['servers', host, 'load'], name: ['load'], tags: { dc } }))
  for (const m of [0, 1]) lines.push(JSON.stringify({ bucket: 'tagged', metric: ['agent', '     0', 'metrics', `     ${m}`], name: ['other'], tags: { m: `${m}` } }))
  const answer = await fetch(`${node.url}tags`, { method: 'POST', headers: { 'X-Dalmatiner': '1' }, body: lines.join('\n') })
  expect(await answer.text()).toContain('"changed":4,"refused":0')
}

beforeAll(async () => {
  await node.start()
  for (const bucket of ['plain', 'tagged']) await node.fill('-prefix', bucket, '-agents', '1', '-metrics', '2', '-fast', '-steps', '10')
  await send()
  await tag()
  browser = await launch()
})

afterAll(async () => {
  await browser.close()
  await node.end()
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.close()
})

const unfold = (part: string) => tab.page.getByRole('button', { name: `Unfold ${part}`, exact: true }).click()

it('has every host in the tree, by name, and a click answers', async () => {
  tab = await Tab.open(browser, `${node.url}?page=buckets&bucket=graphite`)
  await until('the first parts', async () => (await tree()).join() === 'odd,servers,zz')
  await unfold('servers')
  await until('all hosts', async () => (await tree()).join() === 'odd,servers,db1,web1,web2,zz')
  await unfold('web1')
  await unfold('mem')
  await tab.page.locator('.tree a', { hasText: 'dc=eu' }).click()
  await tab.rows.first().waitFor()
  expect(tab.query).toBe("SELECT 'servers'.'web1'.'mem'.'dc=eu' BUCKET graphite LAST 1h")
})

it.each(['plain', 'tagged'])('has the metrics of the bucket %s', async (bucket) => {
  tab = await Tab.open(browser, `${node.url}?page=buckets&bucket=${bucket}`)
  for (const part of ['agent', '     0', 'metrics']) await unfold(part)
  await tab.page.getByText('Chart these 2').click()
  await until('both are drawn', async () => (await tab.rows.count()) === 2)
})

/** Types a query up to the metric, and returns what is offered at each step of the way down. */
async function offers(head: string, tail: string): Promise<string[]> {
  await tab.write(head + tail)
  for (let i = 0; i < tail.length; i++) await tab.page.keyboard.press('ArrowLeft')
  await tab.page.keyboard.press('Control+Space')
  await popup().waitFor()
  return (await offered()).filter((label) => label !== '*')
}

it('offers what answers', async () => {
  tab = await Tab.open(browser, node.url)
  await tab.editor.click()
  const end = ' BUCKET graphite LAST 1h'
  expect(await offers('SELECT servers.', end)).toEqual(['db1', 'web1', 'web2'])
  const leaves = await offers('SELECT odd.', end)
  expect(leaves).toHaveLength(6)
  for (const query of [...leaves.map((leaf) => `SELECT odd.${leaf}${end}`), `SELECT servers.web1.mem.${(await offers('SELECT servers.web1.mem.', end))[0]}${end}`]) {
    const answer = await fetch(`${node.url}?q=${encodeURIComponent(query)}`)
    expect([query, answer.status]).toEqual([query, 200])
  }
})

it('offers the names of a collection where a lookup stands behind', async () => {
  tab = await Tab.open(browser, node.url)
  await tab.editor.click()
  const end = ' FROM graphite LAST 1h'
  const firsts = await offers('SELECT ', end)
  expect(firsts.filter((name) => ['load', 'odd', 'servers', 'zz'].includes(name))).toHaveLength(4)
  for (const name of ['load', 'zz', `servers.web1.${(await offers('SELECT servers.web1.', end))[0]}`]) {
    const query = `SELECT ${name}${end}`
    const answer = await fetch(`${node.url}?q=${encodeURIComponent(query)}`)
    expect([query, answer.status]).toEqual([query, 200])
  }
})
