import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node()
let browser: Browser
let tab: Tab
const open = async (search = '', options = {}) => (tab = await Tab.open(browser, node.url + search, options))
const rows = () => tab.page.locator('.cardinality tbody tr')
const cells = async (n: number) => (await rows().nth(n).locator('td').allTextContents()).map((text) => text.replace('\u202f', ''))
const options = () => tab.page.locator('.cm-tooltip-autocomplete li')
const status = () => tab.page.locator('.cardinality [role=status]')

/** Agent 0 has odd tags, the others plain ones. */
async function tag(): Promise<void> {
  const lines = [0, 1, 2].flatMap((agent) => [0, 1, 2, 3].map((m) => JSON.stringify({
    bucket: 'shop', metric: ['agent', `     ${agent}`, 'metrics', `     ${m}`], collection: 'fleet', name: [`m${m}`],
    tags: { host: agent ? `web${agent}` : "o\\'dd one", 'k8s:app': m < 2 ? 'shop' : 'cart', ...(agent ? {} : { 'n\\:s:x y': 'v' }) },
  })))
  const answer = await fetch(`${node.url}tags`, { method: 'POST', headers: { 'X-Dalmatiner': '1' }, body: lines.join('\n') })
  const report = await answer.text()
  if (!report.includes('"changed":12,"refused":0')) throw new Error(report)
}

beforeAll(async () => {
  await node.start()
  await node.fill('-prefix', 'shop', '-agents', '3', '-metrics', '4', '-fast', '-batch', '-walk', '-steps', '600')
  await tag()
  browser = await launch()
})

afterAll(async () => {
  await browser.close()
  await node.end()
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  expect([...tab.hosts]).toEqual([node.http])
  await tab.close()
})

it('shows what has most series, down to a query', async () => {
  await open('?page=cardinality&bucket=shop')
  await until('the first part', async () => (await rows().count()) === 1)
  expect(await cells(0)).toEqual(["'agent' …", '', '12', '100 %', '12', '12'])
  await rows().getByRole('link').click()
  await until('the agents', async () => (await rows().count()) === 3)
  expect((await cells(0))[0]).toMatch(/^' +\d' …$/)
  expect((await cells(0)).slice(2, 4)).toEqual(['4', '33.3 %'])
  await rows().first().getByRole('link').click()
  await until('the part behind', async () => (await rows().count()) === 1)
  await rows().getByRole('link').click()
  await until('the metrics', async () => (await rows().count()) === 4)
  expect(new URL(tab.page.url()).searchParams.get('prefix')).toMatch(/^'agent'\.' +\d'\.'metrics'$/)
  await tab.page.locator('.path a', { hasText: 'agent' }).click()
  await until('the way back', async () => (await rows().count()) === 3)
  await tab.page.goBack()
  await until('the metrics again', async () => (await rows().count()) === 4)
  await rows().first().getByRole('link').click()
  await tab.rows.first().waitFor()
  expect(tab.query).toMatch(/^SELECT 'agent'\.' +\d'\.'metrics'\.' +\d' BUCKET shop LAST 1h$/)
})

it('counts by buckets, tags and values', async () => {
  await open()
  await tab.page.getByRole('link', { name: 'Cardinality' }).click()
  await tab.page.getByRole('tab', { name: 'Buckets' }).click()
  await until('shop is there', async () => (await rows().allTextContents()).some((text) => text.startsWith('shop')))
  await tab.page.getByRole('button', { name: 'Most new' }).click()
  await until('the order is in the URL', async () => tab.page.url().includes('sort=new'))
  await tab.page.getByRole('tab', { name: 'Tags' }).click()
  await until('three tags', async () => (await rows().count()) === 3)
  expect((await cells(0)).slice(0, 6)).toEqual(['k8s:app', '2', '', '12', '100 %', '12'])
  expect((await cells(1)).slice(0, 6)).toEqual(['host', '3', '', '12', '100 %', '12'])
  expect((await cells(2))[0]).toBe("'n:s':'x y'")
  expect(await status().textContent()).toMatch(/^3 of 3 names · 12 series · 12 of them new since /)
  await rows().nth(1).getByRole('link').click()
  await until('its values', async () => (await rows().count()) === 3)
  await rows().filter({ hasText: 'dd one' }).getByRole('link').click()
  await tab.rows.first().waitFor()
  expect(tab.query).toBe("SELECT ALL FROM fleet WHERE host = 'o\\'dd one' LAST 1h")
  await until('four series', async () => (await tab.rows.count()) === 4)
})

it('completes collections, tags and values with their counts', async () => {
  await open()
  const complete = async (typed: string, offer: string) => {
    await tab.page.keyboard.type(typed)
    await until(`it offers ${offer}`, async () => (await options().allTextContents()).includes(offer))
    await options().filter({ hasText: offer }).first().click()
  }
  await tab.write('SELECT ALL FROM ')
  await complete('fl', 'fleet12 series')
  await complete(' WHERE ho', 'host12 series')
  await complete(' = o', "'o\\'dd one'4 series")
  await complete(' AND k8s:', 'k8s:app12 series')
  await complete(' = sh', 'shop6 series')
  await complete(' GROUP BY $k8', '$k8s:app12 series')
  await complete(' USING su', 'sum')
  await tab.page.keyboard.press('Control+Enter')
  await tab.rows.first().waitFor()
  expect(tab.query).toBe("SELECT ALL FROM fleet WHERE host = 'o\\'dd one' AND k8s:app = shop GROUP BY $k8s:app USING sum LAST 1h")
})

it('builds a lookup by clicks', async () => {
  await open()
  await tab.page.getByRole('button', { name: 'Tags' }).click()
  const panel = tab.page.getByLabel('Tag browser')
  const found = panel.getByLabel('Matching series')
  const series = (text: string) => until(`${text} match`, async () => (await found.textContent()) === text)
  await panel.getByLabel('Collection').selectOption('fleet')
  await series('12 series')
  await panel.getByRole('button', { name: /^k8s:app/ }).click()
  await panel.getByRole('button', { name: /^shop/ }).click()
  await series('6 series')
  await panel.getByLabel('Tags that begin with').fill('ho')
  await until('one tag is left', async () => (await panel.locator('section').first().locator('li').count()) === 1)
  await panel.getByRole('button', { name: /^host/ }).click()
  await until('values of what matches', async () => (await panel.getByRole('button', { name: /dd one/ }).textContent())!.endsWith('2'))
  await panel.getByRole('button', { name: /dd one/ }).click()
  await series('2 series')
  await panel.getByRole('button', { name: 'Exclude host' }).click()
  await series('4 series')
  await panel.getByRole('button', { name: 'Insert query' }).click()
  await tab.rows.first().waitFor()
  expect(tab.query).toBe("SELECT ALL FROM fleet WHERE k8s:app = shop AND host != 'o\\'dd one' LAST 1h")
  await until('four series', async () => (await tab.rows.count()) === 4)
})

it('fits on a narrow screen, and says what is wrong', async () => {
  await open('?page=cardinality', { viewport: { width: 390, height: 844 } })
  await rows().first().waitFor()
  const fits = () => tab.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)
  expect(await fits()).toBe(true)
  await tab.page.goto(`${node.url}?page=cardinality&bucket=nowhere`)
  await tab.page.getByRole('alert').getByText('unknown bucket').waitFor()
  await tab.page.goto(node.url)
  await tab.page.getByRole('button', { name: 'Tags' }).click()
  await tab.page.getByLabel('Collection').selectOption('fleet')
  await tab.page.getByRole('button', { name: /^host/ }).click()
  await tab.page.getByRole('button', { name: /^web1/ }).waitFor()
  expect(await fits()).toBe(true)
})

it('completes collections that only a longer beginning finds', async () => {
  const lines = Array.from({ length: 230 }, (_, i) => JSON.stringify({ bucket: 'shop', metric: ['agent', '     0', 'metrics', '     0'], collection: `many${i}`, tags: { n: `${i}` } }))
  const answer = await fetch(`${node.url}tags`, { method: 'POST', headers: { 'X-Dalmatiner': '1' }, body: lines.join('\n') })
  expect(await answer.text()).toContain('"changed":230,"refused":0')
  await open()
  await tab.write('SELECT ALL FROM ')
  await tab.page.keyboard.type('many')
  await until('it offers many of them', async () => (await options().count()) > 50)
  await tab.page.keyboard.type('99')
  await until('it offers the last one', async () => (await options().allTextContents()).includes('many991 series'))
})
