import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node()
const now = BigInt(Date.now()) * 1_000_000n
let browser: Browser
let tab: Tab
const open = async (search = '', options = {}) => (tab = await Tab.open(browser, `${node.url}?page=events&${search}`, options))
const rows = () => tab.page.locator('.events tbody tr')
const status = () => tab.page.getByRole('status')
const row = (text: string) => tab.page.locator('.events tbody tr', { hasText: text })

async function write(bucket: string, ...lines: string[]): Promise<void> {
  const answer = await fetch(`${node.url}events/${bucket}`, { method: 'POST', body: lines.join('\n') })
  const report = await answer.text()
  if (!answer.ok || !report.includes(`"accepted":${lines.length},`)) throw new Error(report)
}

beforeAll(async () => {
  await node.start()
  browser = await launch()
  await write('logs',
    `{"time":${now - 60_000_000_000n},"user":"ann","status":200}`,
    `{"time":${now - 50_000_000_000n},"user":"bob","status":503,"n":9007199254740993,"html":"<img src=x onerror=alert(1)>"}`,
    `{"time":${now - 39_999_999_991n},"user":"ann","status":500,"path":"${'/long'.repeat(12)}","tags":["${'x'.repeat(60)}",{"deep":null}]}`)
  await write('many', ...Array.from({ length: 1200 }, (_, i) => `{"time":${now - 1_000_000_000n * BigInt(1300 - i)},"i":${i}}`))
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

it('explains a query of events', async () => {
  const q = `SELECT EVENTS FROM logs WHERE status >= 500 LAST 1h`
  tab = await Tab.open(browser, `${node.url}?query=${encodeURIComponent(q)}&view=plan`)
  const plan = tab.page.locator('.plan')
  await plan.waitFor()
  expect(await plan.textContent()).toMatch(/^3 events read, 2 found.*status.*2 of 3 events found/s)
})

it('finds events by bucket, range and filter, and the URL has all of it', async () => {
  await open()
  await tab.page.getByRole('link', { name: 'Events' }).and(tab.page.locator('[aria-current=page]')).waitFor()
  await tab.page.getByText('Choose a bucket.').waitFor()
  await tab.page.getByLabel('Bucket').fill('logs')
  await tab.page.getByRole('button', { name: 'Show' }).click()
  await until('three events', async () => (await rows().count()) === 3)
  expect(await status().textContent()).toMatch(/^3 events · node .+ · round trip /)
  expect(await row('bob').textContent()).toContain('"n": 9007199254740993') // more digits than a number of a browser
  expect(await row('bob').textContent()).toContain('"<img src=x onerror=alert(1)>"')
  expect(await tab.page.locator('.events img').count()).toBe(0)
  expect(await row('deep').locator('pre').textContent()).toContain('\n  "tags": ["xxx')
  const time = row('deep').locator('time')
  expect(await time.textContent()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/)
  expect(await time.getAttribute('title')).toContain(`${now - 39_999_999_991n} ns`)

  await tab.page.getByLabel('Filter').fill("user == 'ann' AND status >= 500")
  await tab.page.keyboard.press('Enter')
  await until('one event', async () => (await rows().count()) === 1)
  await tab.page.getByRole('button', { name: '6 h', exact: true }).click()
  await until('the range is in the URL', async () => new URL(tab.page.url()).searchParams.get('range') === 'LAST 6h')
  const link = tab.page.url()
  await tab.page.goBack()
  await tab.page.goBack()
  await until('three events again', async () => (await rows().count()) === 3)
  expect(await tab.page.getByLabel('Filter').inputValue()).toBe('')
  await tab.page.goto(link)
  await until('the link shows one', async () => (await rows().count()) === 1)
  expect(await tab.page.getByLabel('Filter').inputValue()).toBe("user == 'ann' AND status >= 500")
})

it('goes on where the limit ended an answer', async () => {
  await open('bucket=many&limit=1000')
  await tab.page.getByText('The range has more events than the limit.').waitFor()
  expect(await rows().count()).toBe(500)
  await tab.page.getByRole('button', { name: 'Show 500 more' }).click()
  await until('all are drawn', async () => (await rows().count()) === 1000)
  await tab.page.getByRole('button', { name: 'Later ones' }).click()
  await until('the rest', async () => (await status().textContent())!.startsWith('201 events'))
  expect(await rows().first().textContent()).toContain('"i": 999')
})

it('says what is wrong, and what there is not', async () => {
  await open('bucket=logs&filter=user+%3D')
  await tab.page.getByRole('alert').getByText('expected one of').waitFor()
  await tab.page.getByLabel('Filter').fill('user == eve')
  await tab.page.keyboard.press('Enter')
  await tab.page.getByText('No event that the filter takes is in this range.').waitFor()
  expect(await tab.page.locator('.copy').textContent()).toContain(`${node.url}events/logs'`)
  await tab.page.getByLabel('Bucket').fill('log')
  await tab.page.keyboard.press('Enter')
  await tab.page.getByRole('alert').getByText('unknown bucket').waitFor()
  await tab.page.getByRole('button', { name: 'Live' }).click()
  await tab.page.getByRole('alert').getByText('unknown bucket').waitFor()
  await tab.page.goto(`${node.url}?page=events&bucket=logs&range=yesterday`)
  await tab.page.getByRole('alert').getByText('The range yesterday is none').waitFor()
})

it('follows a bucket, with pauses and through a restart', async () => {
  await open('bucket=logs&live=1&filter=user+%3D%3D+ann')
  const live = () => until('it is live', async () => (await status().textContent())!.startsWith('live'))
  await live()
  await write('logs', '{"user":"ann","k":1}', '{"user":"bob","k":2}', '{"user":"ann","k":3}')
  await until('two of three events', async () => (await rows().count()) === 2)
  expect(await rows().first().textContent()).toContain('"k": 3') // the newest first
  await tab.page.getByRole('button', { name: 'Pause' }).click()
  await write('logs', '{"user":"ann","k":4}')
  await tab.page.getByRole('button', { name: 'Go on (1 new)' }).waitFor()
  expect(await rows().count()).toBe(2)
  await tab.page.getByRole('button', { name: 'Go on' }).click()
  await until('what came meanwhile', async () => (await rows().count()) === 3)
  await node.stop()
  await tab.page.getByText('The tail broke off once.').waitFor()
  await node.start()
  await live()
  await write('logs', '{"user":"ann","k":5}')
  await until('what came after', async () => (await rows().count()) === 4)
  await tab.page.getByRole('button', { name: 'Live' }).click()
  await until('the range has all', async () => (await rows().count()) === 6)
})

it('marks the events of a query in its chart', async () => {
  await node.fill('-prefix', 'shop', '-agents', '1', '-metrics', '2', '-fast', '-batch', '-walk', '-steps', '600')
  const end = Math.floor(Number(now / 1_000_000n) / 1000) * 1000
  const events = "EVENTS FROM logs WHERE user == 'bob' AS faults"
  const query = (fields: string) => `query=${encodeURIComponent(`SELECT ${fields} BETWEEN ${end - 100_000} AND ${end}`)}`
  tab = await Tab.open(browser, `${node.url}?${query(events)}`)
  await until('the event of a query without series', async () => (await rows().count()) === 1)
  expect(await tab.page.locator('.chart').count()).toBe(0)
  await tab.page.goto(`${node.url}?${query(`agent.'     0'.metrics.'     1' BUCKET shop, ${events}`)}`)
  await tab.rows.first().waitFor()
  expect(await rows().count()).toBe(1)
  expect(await status().textContent()).toMatch(/ · 1 event · /)
  const over = tab.page.locator('.u-over')
  const { width } = (await over.boundingBox())!
  const at = (Number(now / 1_000_000n) - 50_000 - (end - 100_000)) / 99_000 // the last of 100 points stands at the right edge
  await over.hover({ position: { x: width * at, y: 100 } })
  await tab.page.locator('.tip').getByText('"n":9007199254740993').waitFor()
  await over.hover({ position: { x: width * at - 40, y: 100 } })
  await until('no event is there', async () => !(await tab.page.locator('.tip').textContent())!.includes('"n"'))
})

it('fits on a narrow screen', async () => {
  await open('bucket=logs', { viewport: { width: 390, height: 844 } })
  await rows().first().waitFor()
  const [wide, width] = await tab.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
  expect(wide).toBeLessThanOrEqual(width!)
})
