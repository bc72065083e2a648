import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node('--set', 'self_monitor=off', '--set', 'merge.background=off')
let browser: Browser
let tab: Tab
const chunk = 720 // slots that are lost together
const begin = Math.floor((Date.now() / 1000 - 7200) / chunk) * chunk
const lost = [begin + chunk, begin + 2 * chunk] as const
const query = `SELECT 'agent'.'     0'.'metrics'.* BUCKET hole AFTER ${begin * 1000} FOR 1800s`
const open = async (more = '', options = {}) => {
  tab = await Tab.open(browser, `${node.url}?query=${encodeURIComponent(query)}${more}`, options)
  await tab.page.locator('.damage').waitFor()
}
const clock = (s: number) => new Date(s * 1000).toISOString().slice(11, 19)
/** What the pointer reads at a share of the chart's width. */
const tip = async (share: number) => {
  await tab.page.locator('.chart canvas').waitFor()
  const over = (await tab.page.locator('.u-over').boundingBox())!
  await tab.page.mouse.move(over.x + over.width * share, over.y + 50)
  await tab.page.locator('.tip').waitFor()
  return (await tab.page.locator('.tip').textContent())!
}
/** The colours of the chart around a share of its width, from top to bottom: wider than a line of the grid. */
const colours = (share: number) =>
  tab.page.evaluate((at) => {
    const canvas = document.querySelector<HTMLCanvasElement>('.chart canvas')!
    const over = document.querySelector('.u-over')!.getBoundingClientRect()
    const box = canvas.getBoundingClientRect()
    const x = Math.round((over.left - box.left + over.width * at) * devicePixelRatio)
    const { data } = canvas.getContext('2d')!.getImageData(x - 5, 40, 11, 100)
    return [...new Set(Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join()))]
  }, share)

beforeAll(async () => {
  browser = await launch()
  await node.start()
  // The second one is written over a part of the first, and lost.
  for (const [seed, from, steps] of [[1, begin, 1800], [2, begin + 1000, 100]]) {
    await node.fill('-prefix', 'hole', '-agents', '1', '-metrics', '2', '-fast', '-steps', `${steps}`, '-seed', `${seed}`, '-start', `${from}`)
    await node.flush()
  }
  await node.stop()
  node.damage()
  await node.start()
})

afterAll(async () => {
  await browser.close()
  await node.end()
})

afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.close()
})

it('names what damage took, and leaves it out of the chart', async () => {
  await open('', { viewport: { width: 2200, height: 860 } })
  const said = (await tab.page.locator('.damage').textContent())!
  expect(said).toContain("'agent'.'     0'.'metrics'.'     1' BUCKET 'hole': 720 slots from ")
  expect(said).toMatch(new RegExp(`${clock(lost[0])} to \\S+ ${clock(lost[1])}: damage in flush/0000000000000002\\.seg`))
  expect(await tab.page.locator('.legend .partial').allTextContents()).toEqual([' 60 % 720 unknown', ' 60 % 720 unknown'])
  expect(await tip(0.6)).toMatch(/unknown.*unknown$/)
  expect(await tip(0.2)).not.toContain('unknown')
  expect(await tip(0.9)).not.toContain('unknown')
  const warn = '255,245,220'
  expect(await colours(0.6)).toContain(warn)
  expect(await colours(0.2)).not.toContain(warn)
  // Nothing is hatched for what nobody looks at.
  for (const name of await tab.page.locator('.legend .name').all()) await name.click()
  await until('nothing is hatched', async () => !(await colours(0.6)).includes(warn))
})

it('tells unknown slots from gaps in the table', async () => {
  await open('&view=table&points=all')
  await tab.page.getByRole('button', { name: 'First' }).click()
  for (let i = 0; i < 3; i++) await tab.page.locator('.pager').getByRole('button', { name: 'Later' }).click()
  const row = (s: number) => tab.page.locator('.values tbody tr', { hasText: clock(s) }).locator('td').allTextContents()
  await until('the page is there', async () => (await row(lost[0])).length > 0)
  expect((await row(lost[0] - 1)).slice(1).join()).toMatch(/^\d+,\d+$/)
  expect((await row(lost[0])).slice(1)).toEqual(['unknown', 'unknown'])
})

it('shows older values to those who ask, and marks them', async () => {
  await open('&points=all', { viewport: { width: 2200, height: 860 }, colorScheme: 'dark' })
  await tab.page.getByRole('button', { name: 'Older values' }).press('Enter')
  await tab.page.getByText('may be out of date; it is marked').waitFor()
  expect(new URL(tab.page.url()).searchParams.get('damaged')).toBe('show')
  expect(await tab.page.locator('.legend .partial').allTextContents()).toEqual([' 100 % 720 older', ' 100 % 720 older'])
  expect(await tip(0.6)).toMatch(/\dolder.*\dolder/)
  expect(await tip(0.2)).not.toContain('older')
  expect(await colours(0.6)).toContain('54,43,18')
  await tab.page.getByRole('tab', { name: 'Table' }).click()
  await tab.page.getByRole('button', { name: 'First' }).click()
  for (let i = 0; i < 3; i++) await tab.page.locator('.pager').getByRole('button', { name: 'Later' }).click()
  const row = tab.page.locator('.values tbody tr', { hasText: clock(lost[0]) })
  await until('older values are marked', async () => /\d older/.test((await row.textContent().catch(() => '')) ?? ''))
  await tab.page.getByRole('tab', { name: 'Explain' }).click()
  await tab.page.getByRole('treeitem').first().waitFor()
  expect(await tab.page.locator('.plan').textContent()).toContain('720 unknown')
})

it('exports older values only where they are marked', async () => {
  await open('&damaged=show')
  const files: Record<string, string> = {}
  for (const form of ['CSV', 'JSON']) {
    const [file] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByRole('button', { name: form, exact: true }).click()])
    files[form] = readFileSync(await file.path(), 'utf8')
  }
  const line = files.CSV!.split('\r\n').find((l) => l.includes(`T${clock(lost[0])}`))
  expect(line).toMatch(/Z,,$/)
  const answer = JSON.parse(files.JSON!)
  expect([answer.damaged, answer.results[0].unknown.slots, answer.results[0].values[chunk]]).toEqual(['shown', 720, expect.any(Number)])
})

it('fits on a narrow screen', async () => {
  for (const view of ['', '&view=table', '&view=plan']) {
    tab = await Tab.open(browser, `${node.url}?query=${encodeURIComponent(query)}${view}`, { viewport: { width: 390, height: 844 } })
    await tab.page.locator('.chart, .values, .plan').first().waitFor()
    const [wide, width] = await tab.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, view).toBeLessThanOrEqual(width!)
    if (view !== '&view=plan') await tab.close()
  }
})
