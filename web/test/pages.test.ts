import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node()
let browser: Browser
let tab: Tab
const open = async (search = '', options = {}) => (tab = await Tab.open(browser, node.url + search, options))
const rate = '?query=SELECT+sum(*.mps+BUCKET+dalmatinerdb)+LAST+5m'

beforeAll(async () => {
  await node.start()
  node.load('-prefix', 'shop', '-agents', '2', '-metrics', '5', '-walk', '-flush-interval', '1s', '-spawn-interval', '100ms', '-jitter', '100ms')
  browser = await launch()
  const buckets = async () => (await (await fetch(`${node.url}buckets`)).text()).includes('shop')
  await until('the load arrives', buckets)
})

afterAll(async () => {
  await browser.close()
  await node.end()
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.close()
})

it('takes a bucket through its life', async () => {
  await open('?page=buckets')
  const row = (name: string) => tab.page.locator('.buckets tbody tr', { hasText: name })
  await row('shop').locator('.spark').waitFor()
  await tab.page.getByRole('button', { name: 'Create a bucket' }).click()
  const form = tab.page.getByRole('form', { name: 'Create a bucket' })
  await form.getByLabel('Name').fill('shop')
  await form.getByText('There is a bucket shop already.').waitFor()
  await form.getByLabel('Name').fill('minutes')
  await form.getByLabel('Resolution').fill('1m')
  await form.getByLabel('TTL').fill('30d')
  await form.getByRole('button', { name: 'Create' }).click()
  await row('minutes').waitFor()
  expect(await row('minutes').textContent()).toContain('30 d')
  await row('minutes').getByRole('link').click()
  await tab.page.getByText('No metric yet').waitFor()
  await tab.page.getByLabel('TTL').fill('7d')
  await tab.page.getByRole('button', { name: 'Set' }).click()
  await tab.page.locator('.facts dd', { hasText: /^7 d$/ }).first().waitFor()
  const remove = tab.page.getByRole('button', { name: 'Delete' })
  expect(await remove.isDisabled()).toBe(true)
  await tab.page.getByLabel('Name of the bucket to delete').fill('minutes')
  await remove.click()
  await row('shop').waitFor()
  await until('it is gone', async () => (await row('minutes').count()) === 0)
})

it('finds metrics in the tree and by search, and makes queries of them', async () => {
  await open('?page=buckets&bucket=shop')
  for (const part of ['agent', '1', 'metrics']) await tab.page.getByRole('button', { name: `Unfold ${part}` }).click()
  await tab.page.getByText('Chart these 5').waitFor()
  await tab.page.getByLabel('Search metrics').fill("1'.'MET")
  await until('five are found', async () => (await tab.page.locator('.found li').count()) === 5)
  await tab.page.locator('.found a').first().click()
  await tab.rows.first().waitFor()
  expect(tab.query).toMatch(/^SELECT 'agent'\.' +1'\.'metrics'\.' +\d' BUCKET shop LAST 1h$/)
})

it('lists the functions, whose examples run', async () => {
  await open('?page=functions')
  await tab.page.getByLabel('Search functions').fill('percentile(metric')
  await until('one is left', async () => (await tab.page.locator('.functions tbody tr').count()) === 1)
  await tab.page.locator('.functions .run').click()
  await tab.rows.first().waitFor()
  expect(tab.query).toMatch(/^SELECT percentile\(/)
})

it('every example runs', async () => {
  await open('?page=functions')
  await tab.page.locator('.functions .run').first().waitFor()
  const links = await tab.page.locator('.functions .run').evaluateAll((list) => list.map((a) => (a as HTMLAnchorElement).href))
  expect(links.length).toBeGreaterThan(50)
  const failed: string[] = []
  for (const link of links) {
    const query = new URL(link).searchParams.get('query')!
    const answer = await fetch(node.url, { method: 'POST', body: new URLSearchParams({ q: query }) })
    if (!answer.ok) failed.push(`${query}: ${await answer.text()}`)
  }
  expect(failed).toEqual([])
})

it('shows the node', async () => {
  await open('?page=node')
  await tab.page.getByText('Points in', { exact: true }).waitFor()
  await until('points come in', async () => /^[1-9]/.test((await tab.page.locator('.tile b').first().textContent())!))
  await until('the account has them', async () => /accepted \d/.test((await tab.page.locator('.node').textContent())!))
  expect(await tab.page.locator('.stack .pass rect').count()).toBeGreaterThan(0)
  await until('the charts are drawn', async () => (await tab.page.locator('.node canvas').count()) === 2)
  await until('the log is there', async () => (await tab.page.locator('.log li').count()) > 0)
  expect(await tab.page.locator('.log').textContent()).toContain('store open')
  expect(await tab.page.locator('.node').textContent()).toMatch(/head-blocks.*KiB/s)
  expect(await tab.page.locator('.node').textContent()).toContain(`ddb admin check --addr ${node.http} `)
})

it('fits on a narrow screen', async () => {
  for (const search of [rate, '?page=buckets', '?page=buckets&bucket=shop', '?page=events', '?page=functions', '?page=node', '']) {
    await open(search, { viewport: { width: 390, height: 844 } })
    await tab.page.waitForLoadState('networkidle').catch(() => undefined) // the node's page never is
    const [wide, width] = await tab.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, search).toBeLessThanOrEqual(width!)
    if (search !== '') await tab.close()
  }
})

it('has dark and light colours', async () => {
  await open('', { colorScheme: 'dark' })
  const page = () => tab.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  expect(await page()).toBe('rgb(17, 20, 25)')
  await tab.page.getByRole('button', { name: 'Colours: auto' }).click()
  await until('it is light', async () => (await page()) === 'rgb(246, 247, 249)')
  await tab.page.reload()
  await until('it stays light', async () => (await page()) === 'rgb(246, 247, 249)')
})

it('works below a sub-path', async () => {
  const proxy: Server = createServer((from, to) => {
    const path = from.url!.replace(/^\/metrics-of\/node1/, '')
    if (path === from.url) return void to.writeHead(404).end()
    from.pipe(request(node.url, { path, method: from.method, headers: { ...from.headers, host: node.http } }, (answer) => {
      to.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(to)
    }))
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  const at = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/metrics-of/node1/`
  tab = await Tab.open(browser, at + rate)
  await tab.rows.first().waitFor()
  await tab.page.getByRole('link', { name: 'Buckets' }).click()
  await tab.page.locator('.buckets tbody tr', { hasText: 'shop' }).getByRole('link').click()
  await tab.page.getByRole('button', { name: 'Unfold agent' }).waitFor()
  expect(tab.page.url()).toBe(`${at}?page=buckets&bucket=shop`)
  proxy.closeAllConnections()
  proxy.close()
})

it('says that the node is gone, and heals when it is back', async () => {
  await open(`${rate}&live=1`)
  await tab.rows.first().waitFor()
  await node.kill()
  await tab.page.getByRole('alert').getByText('No answer from the node').waitFor()
  expect(await tab.rows.count()).toBe(1) // what was known stays
  await node.start()
  await tab.page.getByText('No answer from the node').waitFor({ state: 'detached' })
  const before = await tab.page.locator('.timing').textContent()
  await until('it is live again', async () => (await tab.page.locator('.timing').textContent()) !== before)
})
