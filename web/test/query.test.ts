import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'

const node = new Node()
let browser: Browser
let tab: Tab
// haggar pads its numbers.
const zero = "'     0'"
const day = `SELECT 'agent'.${zero}.'metrics'.* BUCKET day`
const open = async (search = '', options = {}) => (tab = await Tab.open(browser, node.url + search, options))
const link = (query: string, more = '') => `?query=${encodeURIComponent(query)}${more}`
const slowBegin = Date.now() - 3_600_000
const now = 'SELECT sum(*.mps BUCKET dalmatinerdb) LAST 5m'

beforeAll(async () => {
  await node.start()
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

it('says what to do on an empty node', async () => {
  await open()
  await tab.page.getByText('No bucket holds data of yours yet').waitFor()
  expect(await tab.page.locator('.copy code').textContent()).toContain(`haggar -carbon ${node.tcp} `)
})

it('loads no more than 200 kB, under a strict policy', async () => {
  let bytes = 0
  await open()
  const cdp = await tab.page.context().newCDPSession(tab.page)
  await cdp.send('Network.enable')
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true })
  cdp.on('Network.loadingFinished', (e) => (bytes += e.encodedDataLength))
  const response = (await tab.page.reload({ waitUntil: 'networkidle' }))!
  expect(bytes).toBeGreaterThan(50_000)
  expect(bytes).toBeLessThanOrEqual(200_000)
  const policy = (await response.allHeaders())['content-security-policy']!
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
})

describe('under a load', () => {
  beforeAll(async () => {
    await node.fill('-prefix', 'day', '-agents', '1', '-metrics', '5', '-fast', '-batch', '-walk', '-steps', '86400')
    await node.fill('-prefix', 'slow', '-agents', '1', '-metrics', '4', '-fast', '-walk', '-steps', '360', '-step', '10s', '-start', new Date(slowBegin).toISOString())
    node.load('-prefix', 'shop', '-agents', '1', '-metrics', '5', '-walk', '-flush-interval', '1s', '-spawn-interval', '100ms', '-jitter', '100ms')
  })

  it('completes functions, metrics part by part, and buckets', async () => {
    await open()
    const popup = tab.page.locator('.cm-tooltip-autocomplete')
    const accept = async (label: string) => {
      await popup.getByText(label, { exact: true }).first().click()
    }
    await tab.editor.click()
    await tab.page.keyboard.type('SELECT ma')
    await popup.getByText('mavg', { exact: true }).waitFor()
    await accept('max')
    await tab.page.keyboard.type('age')
    await accept('agent')
    await tab.page.keyboard.type('.')
    await accept(zero)
    await tab.page.keyboard.type('.met')
    await accept('metrics')
    await tab.page.keyboard.type('.')
    await accept("'     3'")
    await tab.page.keyboard.type(' BUCKET d')
    await accept('day')
    await tab.page.keyboard.type(', 1m')
    await tab.page.keyboard.press('End')
    await tab.page.keyboard.type(' LAST 1h')
    expect((await tab.editor.textContent())!.trim()).toBe("SELECT max(agent.'     0'.metrics.'     3' BUCKET day, 1m) LAST 1h")
    await tab.page.keyboard.press('Control+Enter')
    await tab.rows.first().waitFor()
    expect(tab.query).toContain('BUCKET day, 1m)')
  })

  it('underlines a mistake at its place', async () => {
    await open()
    await tab.ask('SELECT max(x BUCKET shop, 1m LAST 1h')
    await tab.page.locator('.problem').waitFor()
    expect(await tab.page.locator('.problem').textContent()).toContain('line 1, column 30')
    expect(await tab.page.locator('.cm-lintRange-error').textContent()).toBe('LAST')
    await tab.ask(now)
    await tab.rows.first().waitFor()
    expect(await tab.page.locator('.problem').count()).toBe(0)
    expect(await tab.page.locator('.cm-lintRange-error').count()).toBe(0)
  })

  it('shows how long a query takes, and ends it', async () => {
    await open()
    let given: (() => void) | undefined
    const asks = (url: URL) => url.pathname === '/'
    await tab.page.route(asks, (route) => (route.request().method() === 'POST' ? void (given = () => void route.continue()) : route.continue()))
    await tab.ask(now)
    await tab.page.locator('.running').getByText(/ s$/).waitFor()
    await tab.page.getByRole('button', { name: 'Cancel' }).click()
    await tab.page.getByText('The query was cancelled.').waitFor()
    expect(await tab.page.getByRole('button', { name: 'Run' }).count()).toBe(1)
    expect(given).toBeDefined()
    await tab.page.unroute(asks)
    // How far a query is comes from the node under the name that the page gave it.
    await tab.page.route((url) => url.pathname === '/admin/queries', (route) => route.fulfill({ json: [{ took_ms: 500, share: 0.25 }] }))
    let id = ''
    let answer: (() => void) | undefined
    await tab.page.route(asks, (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      id = new URLSearchParams(route.request().postData()!).get('id') ?? ''
      return new Promise<void>((done) => (answer = () => void route.continue().then(done)))
    })
    await tab.page.getByRole('button', { name: 'Run' }).click()
    await until('the bar shows the share', async () => (await tab.page.locator('.running progress').getAttribute('value')) === '0.25')
    expect(id).not.toBe('')
    answer!()
    await tab.rows.first().waitFor()
    await tab.page.unroute(asks)
    await tab.page.getByRole('button', { name: 'Run' }).click()
    await tab.rows.first().waitFor()
  })

  it('leaves room for the whole label of an axis', async () => {
    await open(link(`${day} AS 'share' METADATA {unit: 'requests per minute'} LAST 1h`))
    await tab.rows.first().waitFor()
    const over = (await tab.page.locator('.u-over').boundingBox())!
    const chart = (await tab.page.locator('.chart').boundingBox())!
    const widest = await tab.page.evaluate(() => {
      const c = document.createElement('canvas').getContext('2d')!
      c.font = `12px ${getComputedStyle(document.querySelector('.chart')!).getPropertyValue('--sans')}`
      return c.measureText('-100 requests per minute').width
    })
    expect(over.x - chart.x).toBeGreaterThan(widest)
  })

  it('gives a query without a range the last hour', async () => {
    await open()
    await tab.ask('SELECT sum(*.mps BUCKET dalmatinerdb)')
    await tab.rows.first().waitFor()
    expect(tab.query).toBe('SELECT sum(*.mps BUCKET dalmatinerdb) LAST 1h')
  })

  it('zooms by dragging, and goes back', async () => {
    await open(link(`${day} LAST 1d`))
    await tab.rows.nth(4).waitFor()
    const over = (await tab.page.locator('.u-over').boundingBox())!
    await tab.page.mouse.move(over.x + over.width * 0.25, over.y + 50)
    await tab.page.mouse.down()
    await tab.page.mouse.move(over.x + over.width * 0.5, over.y + 60, { steps: 4 })
    await tab.page.mouse.up()
    await until('the query has the range', async () => /BETWEEN .* AND /.test(tab.query))
    await tab.page.goBack()
    await until('the range is as before', async () => tab.query.endsWith('LAST 1d') && (await tab.editor.textContent())!.endsWith('LAST 1d'))
    await tab.page.getByRole('button', { name: '1 h', exact: true }).click()
    await until('the range is an hour', async () => tab.query.endsWith('LAST 1h'))
  })

  it('follows the present without drawing anew', async () => {
    await open(link(now))
    await tab.rows.first().waitFor()
    await tab.page.getByRole('button', { name: 'Live' }).click()
    await tab.page.evaluate(() => document.querySelector('canvas')!.setAttribute('data-first', ''))
    const answers = new Set<string>()
    await until('five answers came', async () => {
      answers.add((await tab.page.locator('.timing').textContent())!)
      return answers.size >= 5
    })
    expect(await tab.page.locator('canvas[data-first]').count()).toBe(1)
    expect(tab.page.url()).toContain('live=1')
  })

  it('hides and isolates series, and has a link to all of it', async () => {
    await open(link(`${day} LAST 1h`))
    await tab.rows.nth(4).waitFor()
    expect(await tab.rows.nth(1).locator('.name').textContent()).toContain("'metrics'.'     1' BUCKET")
    await tab.rows.nth(1).locator('.name').click()
    await until('the link says so', async () => tab.page.url().includes('hide=1'))
    await tab.rows.nth(2).hover()
    await tab.rows.nth(2).locator('.only').click()
    expect(await tab.page.locator('.legend tr.off').count()).toBe(4)
    await tab.page.getByRole('tab', { name: 'Table' }).click()
    await tab.page.locator('.values tbody tr').first().waitFor()
    expect(await tab.page.locator('.values thead th').count()).toBe(2)
    const other = await Tab.open(browser, tab.page.url())
    await other.page.locator('.values tbody tr').first().waitFor()
    expect(await other.page.locator('.values thead th').count()).toBe(2)
    expect(other.query).toBe(tab.query)
    await other.close()
  })

  it('works by keyboard alone', async () => {
    await open()
    const press = tab.page.keyboard.press.bind(tab.page.keyboard)
    // The element that has the focus, named as a reader of the screen would.
    const focused = () => tab.page.evaluate(() => document.activeElement!.getAttribute('aria-label') || document.activeElement!.textContent!.trim())
    const reach = async (name: string) => {
      for (let i = 0; i < 60 && (await focused()) !== name; i++) await press('Tab')
      expect(await focused()).toBe(name)
    }
    await until('the editor has the focus', () => tab.page.evaluate(() => document.activeElement!.className === 'editor'))
    await tab.page.keyboard.insertText(`${day} LAST 6h`)
    await press('Control+Enter')
    await tab.rows.nth(4).waitFor()
    await reach('1 h')
    await press('Enter')
    await until('the range is an hour', async () => tab.query.endsWith('LAST 1h'))
    await tab.rows.nth(4).waitFor()
    await reach('only')
    await press('Enter')
    await until('one series is left', async () => (await tab.page.locator('.legend tr.off').count()) === 4)
    await reach('Table')
    await press('Space')
    await tab.page.locator('.values tbody tr').first().waitFor()
    await reach('Buckets')
    await press('Enter')
    await tab.page.getByRole('button', { name: 'Create a bucket' }).waitFor()
  })

  it('loses no extreme in columns, and draws a day of five series in time', async () => {
    // Whole minutes, which the columns have as well: a range in between is moved back by up to a column, that of every point is not.
    const range = `${day} AFTER ${(Math.floor(Date.now() / 60_000) - 21 * 60 - 1) * 60_000} FOR 21h`
    const extremes = () => tab.rows.evaluateAll((rows) => rows.map((r) => [...r.querySelectorAll('td')].slice(1, 3).map((td) => td.textContent)))
    await open(link(range))
    await tab.rows.nth(4).waitFor()
    expect(await tab.page.locator('.timing').textContent()).toContain('columns of 1 min ·')
    const reduced = await extremes()
    await tab.page.getByRole('button', { name: 'Every point' }).click()
    await until('every point is there', async () => (await tab.page.locator('.timing').textContent())!.includes(' points'))
    expect(await extremes()).toEqual(reduced)
    await open(link(`${day} LAST 1d`, '&points=all'))
    const draws: number[] = []
    for (let i = 0; i < 5; i++) {
      await until('it is drawn', async () => /draw [\d.]+ m?s/.test((await tab.page.locator('.timing').textContent()) ?? ''))
      const [, value, unit] = /draw ([\d.]+) (m?s)/.exec((await tab.page.locator('.timing').textContent())!)!
      draws.push(Number(value) * (unit === 's' ? 1000 : 1))
      await tab.page.reload()
    }
    // The best of five: other processes take their share of the processor.
    expect(Math.min(...draws)).toBeLessThanOrEqual(300)
  })

  const slowMetric = (n: number) => `'agent'.${zero}.'metrics'.'     ${n}' BUCKET slow`
  const timing = async () => (await tab.page.locator('.timing').textContent())!

  it('shows of a sender that is slower than its bucket what it sent, in columns of its interval', async () => {
    // The load ended when the tests began: as many points as have gone by since are missing.
    await open(link(`SELECT ${slowMetric(1)} LAST 50m`))
    await tab.rows.first().waitFor()
    expect(await tab.rows.first().textContent()).toContain('every 10 s in a 1 s bucket')
    const widths: string[] = []
    tab.page.on('request', (r) => {
      if (r.method() === 'POST') widths.push(new URLSearchParams(r.postData() ?? '').get('width') ?? '')
    })
    await tab.page.goto(node.url + link(`SELECT ${slowMetric(1)} BETWEEN ${slowBegin} AND ${slowBegin + 3_000_000}`))
    await tab.rows.first().waitFor()
    expect(widths.map(Number)).toEqual([expect.any(Number), 334])
    expect(await timing()).toContain('columns of 10 s ·')
    expect(await tab.rows.first().textContent()).toContain(' 100 % every 10 s in a 1 s bucket')
    expect(await tab.page.locator('.legend .partial').count()).toBe(0)
    const over = (await tab.page.locator('.u-over').boundingBox())!
    await tab.page.mouse.move(over.x + over.width * 0.7, over.y + 50)
    await tab.page.locator('.tip').waitFor()
    // The metric is constant: what it is, and how often that is said.
    expect(await tab.page.locator('.tip').textContent()).toMatch(/'\d+every 10 s in a 1 s bucket$/)
  })

  it('keeps these columns while it follows the present', async () => {
    await open(link(`SELECT ${slowMetric(3)} LAST 50m`, '&live=1'))
    const answers = new Set<string>()
    await until('three answers came', async () => {
      const text = await timing()
      if (text.includes('query')) answers.add(text)
      return answers.size >= 3
    })
    for (const text of answers) expect(text).toContain('columns of 10 s ·')
  })

  it('joins the points of a slow sender, and tells them between two of them', async () => {
    await open(link(`SELECT ${slowMetric(1)} BETWEEN ${slowBegin} AND ${slowBegin + 300_000}`, '&points=all'))
    await tab.rows.first().waitFor()
    expect(await timing()).toContain(' 30 points ·')
    // The metric is constant: a line of its colour has a pixel at every place between the first point and the last one.
    const bare = () => tab.page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>('.chart canvas')!
      const over = document.querySelector('.u-over')!.getBoundingClientRect()
      const box = canvas.getBoundingClientRect()
      const [left, width] = [over.left - box.left + over.width * 0.1, over.width * 0.8].map((n) => Math.round(n * devicePixelRatio)) as [number, number]
      const { data } = canvas.getContext('2d')!.getImageData(left, 0, width, canvas.height)
      const drawn = new Set<number>()
      // The colour of the first series.
      for (let i = 0; i < data.length; i += 4) if (data[i] === 0x39 && data[i + 1] === 0x87 && data[i + 2] === 0xe5) drawn.add((i / 4) % width)
      return width - drawn.size
    })
    await until('the line has no hole', async () => (await bare()) === 0)
    const over = (await tab.page.locator('.u-over').boundingBox())!
    const tips: string[] = []
    for (let share = 0.5; share < 0.53; share += 0.004) {
      await tab.page.mouse.move(over.x + over.width * share, over.y + 50)
      tips.push((await tab.page.locator('.tip').textContent())!)
    }
    expect(tips.some((text) => /'\d+\d\d:\d\d:\d\devery 10 s/.test(text))).toBe(true)
    expect(tips.join()).not.toContain('no point')
    await tab.page.getByRole('tab', { name: 'Table' }).click()
    expect(await tab.page.locator('.values td.gap').count()).toBeGreaterThan(80)
  })

  it('shows a series that has ended in grey, after the others', async () => {
    const [dead, begin] = [slowBegin - 3_600_000, slowBegin - 1_800_000]
    await node.fill('-prefix', 'dead', '-agents', '1', '-metrics', '1', '-fast', '-steps', '180', '-step', '10s', '-start', new Date(dead).toISOString())
    const metric = `'agent'.${zero}.'metrics'.'     0' BUCKET`
    await open(link(`SELECT ${metric} dead, ${metric} day BETWEEN ${dead} AND ${slowBegin}`))
    await tab.rows.nth(1).waitFor()
    expect(await tab.rows.evaluateAll((rows) => rows.map((r) => [r.querySelector('.name')!.textContent!.trim().split(' ').at(-1), r.className]))).toEqual([["'day'", ''], ["'dead'", 'ended']])
    const name = tab.rows.nth(1).locator('.name')
    const title = (await name.getAttribute('title'))!
    expect(title).toMatch(/^Ended: the last point was at [-0-9]+ [0-9:]+\nShow or hide$/)
    const at = Date.parse(`${title.slice(29, 48).replace(' ', 'T')}Z`)
    expect(Math.abs(at - (begin - 10_000))).toBeLessThan(2000)
    const colours = await tab.rows.locator('.name').evaluateAll((all) => all.map((e) => getComputedStyle(e).color))
    expect(colours[1]).not.toBe(colours[0])
    // Its number in the link is that of the answer.
    await name.click()
    await until('the link says so', async () => tab.page.url().includes('hide=0'))
  })

  it('averages a rate over the points, in columns or not', async () => {
    const rated = new URLSearchParams({ q: `SELECT rate(${slowMetric(3)}) BETWEEN ${slowBegin + 60_000} AND ${slowBegin + 660_000}` })
    const { results } = (await (await fetch(`${node.url}?${rated}`)).json()) as { results: { values: (number | null)[] }[] }
    const values = results[0]!.values.filter((v) => v !== null)
    expect(values.length).toBe(60)
    expect(values.some((v) => v > 0)).toBe(true)
    const average = values.reduce((a, b) => a + b, 0) / values.length
    for (const [more, width] of [['', 1280], ['', 390], ['&points=all', 1280]] as const) {
      await open(link(rated.get('q')!, more), { viewport: { width, height: 860 } })
      await tab.rows.first().waitFor()
      const shown = Number(await tab.rows.first().locator('td').nth(3).textContent())
      expect(Math.abs(shown / average - 1), `${more} ${width}`).toBeLessThan(0.02)
      if (more === '') await tab.close()
    }
  })

  it('has every figure of the legend on a narrow screen', async () => {
    const query = `SELECT ${day.slice(7)} METADATA {unit: 'percent'} AFTER ${slowBegin} FOR 1h`
    await open(link(query), { viewport: { width: 390, height: 844 } })
    await tab.rows.first().waitFor()
    const legend = tab.page.locator('.legend')
    expect(await legend.evaluate((e) => e.scrollWidth - e.clientWidth)).toBe(0)
    for (const cell of await tab.rows.first().locator('td').all()) {
      const box = (await cell.boundingBox())!
      expect(box.x).toBeGreaterThanOrEqual(0)
      expect(box.x + box.width).toBeLessThanOrEqual(390)
    }
  })

  it('names what does not exist, with what is near', async () => {
    await open(link(`${day} LAST 1h`.replace(' LAST', ', nowhere BUCKET day LAST')))
    await tab.rows.nth(5).waitFor()
    expect(await tab.page.locator('.answer .hint').textContent()).toContain("there is no metric 'nowhere'")
    await open(link('SELECT nowhere BUCKET day LAST 1h'))
    await tab.page.locator('.problem').waitFor()
    expect(await tab.page.locator('.problem').textContent()).toContain("there is no metric 'nowhere'")
  })

  it('shows the plan', async () => {
    await open(link(`SELECT avg('agent'.${zero}.'metrics'.'     1' BUCKET day, 1m) LAST 1h`, '&view=plan'))
    await tab.page.getByRole('treeitem').first().waitFor()
    expect(await tab.page.locator('.plan').textContent()).toMatch(/avg.*read.*slots set/s)
  })

  it('exports every value', async () => {
    await open(link(`${day} LAST 1d`))
    await tab.rows.nth(4).waitFor()
    const files: Record<string, string> = {}
    for (const form of ['CSV', 'JSON']) {
      const [file] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByRole('button', { name: form, exact: true }).click()])
      files[form] = readFileSync(await file.path(), 'utf8')
    }
    // A day that begins within a second ends within one: both are there.
    const seconds = files.CSV!.trimEnd().split('\r\n').length - 1
    expect([86_400, 86_401]).toContain(seconds)
    expect(files.CSV!.split('\r\n')[0]!.split(',').length).toBe(6)
    expect(JSON.parse(files.JSON!).results.map((s: { values: unknown[] }) => s.values.length)).toEqual(Array(5).fill(seconds))
  })

  it('keeps history and saved queries', async () => {
    await open(link(now))
    await tab.rows.first().waitFor()
    await tab.page.getByRole('button', { name: 'Saved and history' }).click()
    await tab.page.getByLabel('Name of the query').fill('mine')
    await tab.page.getByRole('button', { name: 'Save', exact: true }).click()
    await tab.page.goto(node.url)
    await tab.page.getByRole('button', { name: 'Saved and history' }).click()
    expect(await tab.page.locator('.popover .entry').count()).toBe(2)
    await tab.page.locator('.popover .entry', { hasText: 'mine' }).click()
    await tab.rows.first().waitFor()
    expect(tab.query).toBe(now)
  })
})
