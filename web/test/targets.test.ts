import { writeFileSync, mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab } from './browser'
import { Node } from './node'

const target = createServer((_, answer) => answer.setHeader('Content-Type', 'text/plain').end('answer 42\n'))
const file = join(mkdtempSync(join(tmpdir(), 'dalmatiner-page-')), 'prometheus.yml')
const node = new Node('--set', `scrape.config=${file}`)
const alone = new Node()
let browser: Browser
let tab: Tab
let address: string

beforeAll(async () => {
  await new Promise<void>((done) => target.listen(0, '127.0.0.1', done))
  address = `127.0.0.1:${(target.address() as AddressInfo).port}`
  writeFileSync(file, JSON.stringify({
    global: { scrape_interval: '1s' },
    scrape_configs: [
      { job_name: 'live', static_configs: [{ targets: [address], labels: { room: 'r1' } }] },
      { job_name: 'dead', static_configs: [{ targets: ['127.0.0.1:1'] }] },
    ],
  }))
  await Promise.all([node.start(), alone.start()])
  browser = await launch()
})

afterAll(async () => {
  await browser?.close()
  await Promise.all([node.end(), alone.end()])
  target.close()
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.close()
})

it('shows each target, and what is wrong with it', async () => {
  tab = await Tab.open(browser, `${node.url}?page=targets`)
  const job = (name: string) => tab.page.getByRole('region', { name, exact: true })
  await job('live').getByText('up', { exact: true }).waitFor()
  await job('live').getByText('room=r1').waitFor()
  await job('dead').getByText('connection refused').waitFor()
  await tab.page.getByRole('button', { name: '1 down' }).click()
  await expect.poll(() => job('live').count()).toBe(0)
  await job('dead').getByText('down', { exact: true }).waitFor()
  await tab.page.getByRole('searchbox').fill('room=')
  await job('live').getByRole('link').click()
  await tab.page.getByRole('heading', { name: 'Query' }).or(tab.page.locator('canvas').first()).waitFor()
})

it('has no such page on a node that scrapes nothing', async () => {
  tab = await Tab.open(browser, alone.url)
  await tab.page.getByRole('navigation').getByRole('link', { name: 'Functions' }).waitFor()
  expect(await tab.page.getByRole('navigation').getByRole('link', { name: 'Targets' }).count()).toBe(0)
})
