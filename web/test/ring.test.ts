import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node('--set', 'cluster.listen=127.0.0.1:0')
const alone = new Node()
let browser: Browser
let tab: Tab
const open = async (of: Node, search: string, options = {}) => (tab = await Tab.open(browser, of.url + search, options))
const entry = () => tab.page.getByRole('navigation').getByRole('link', { name: 'Ring', exact: true })

beforeAll(async () => {
  await Promise.all([node.start(), alone.start()])
  browser = await launch()
})

afterAll(async () => {
  await browser?.close()
  await Promise.all([node.end(), alone.end()])
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.close()
})

it('shows the members, and takes a change from its stage to a ring', async () => {
  await open(node, '?page=ring')
  await entry().waitFor()
  const card = (name: string) => tab.page.getByRole('region', { name, exact: true })
  const row = card('Members').locator('tbody tr')
  await until('the node owns all', async () => (await row.count()) === 1 && /active\s*up\s*100 %/.test((await row.textContent())!))
  await card('Audit').getByText('Chunks compared').waitFor()
  await card('Moves').getByText('No partition gets a new owner.').waitFor()
  await card('Transfers').getByText('Nothing moves between members.').waitFor()

  const stage = async (n: string) => {
    await tab.page.getByRole('form', { name: 'Stage a change' }).locator('select').first().selectOption('set-n')
    await tab.page.getByRole('spinbutton', { name: 'Copies' }).fill(n)
    await tab.page.getByRole('button', { name: 'Stage', exact: true }).click()
  }
  await stage('4')
  await card('Plan').getByRole('alert').getByText('n = 4 needs as many members').waitFor()
  await stage('1')
  await card('Plan').locator('pre').getByText('n = 1').waitFor()
  await card('Plan').getByRole('button', { name: 'Clear …' }).click()
  await card('Plan').getByRole('button', { name: 'Clear', exact: true }).click()
  await card('Plan').getByText('No change is staged.').waitFor()
  await stage('1')
  await card('Plan').getByRole('button', { name: 'Commit …' }).click()
  const commit = card('Plan').getByRole('button', { name: 'Commit', exact: true })
  expect(await commit.isDisabled()).toBe(true)
  await card('Plan').getByLabel('Type commit').fill('commit')
  await commit.click()
  await until('n is 1', async () => (await tab.page.locator('.ring > .head').textContent())!.includes('n = 1,'))
  await card('Plan').getByText('No change is staged.').waitFor()

  for (const [does, other] of [['Pause', 'Resume'], ['Resume', 'Pause']]) {
    await card('Transfers').getByRole('button', { name: `${does} …` }).click()
    await card('Transfers').getByRole('button', { name: does!, exact: true }).click()
    await card('Transfers').getByRole('button', { name: `${other} …` }).waitFor()
  }
})

it('fits on a narrow screen', async () => {
  await open(node, '?page=ring', { viewport: { width: 390, height: 844 } })
  await tab.page.getByText('Chunks compared').waitFor()
  expect(await tab.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)).toBe(true)
})

it('says that a node is in no cluster', async () => {
  await open(alone, '?page=ring')
  await tab.page.getByText('This node is in no cluster').waitFor()
  expect(await entry().count()).toBe(0)
})
