import { resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, it, onTestFinished } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'
import { missing, Room } from './room'

const docs = resolve(import.meta.dirname, '../../docs')

// The pictures of docs/page.md: SCREENSHOTS=1 npm run browser -- screenshots
describe.runIf(process.env.SCREENSHOTS)('pictures', () => {
  const node = new Node()
  let browser: Browser
  beforeAll(async () => {
    await node.start()
    node.load('-prefix', 'web', '-agents', '10', '-metrics', '200', '-walk', '-flush-interval', '1s', '-spawn-interval', '100ms', '-jitter', '100ms')
    browser = await launch()
  })
  afterAll(async () => {
    await browser.close()
    await node.end()
  })

  it('node and buckets', async () => {
    const tab = await Tab.open(browser, `${node.url}?page=node`, { colorScheme: 'dark', viewport: { width: 1280, height: 1000 } })
    await until('two minutes of account', async () => (await tab.page.locator('.stack .pass rect').count()) > 1, 150_000)
    await tab.page.screenshot({ path: resolve(docs, 'page-node.png') })
    await tab.close()
    const other = await Tab.open(browser, `${node.url}?page=buckets&bucket=web`)
    for (const part of ['agent', '3', 'metrics']) await other.page.getByRole('button', { name: `Unfold ${part}` }).click()
    await other.page.locator('.tree a').nth(10).waitFor()
    await other.page.locator('.spark').first().waitFor()
    await other.page.screenshot({ path: resolve(docs, 'page-buckets.png') })
    await other.close()
  }, 200_000)

  it('query', async () => {
    await node.fill('-prefix', 'shop', '-agents', '1', '-metrics', '12', '-fast', '-batch', '-walk', '-steps', '21600')
    const field = (n: number, name: string) => `agent.'     0'.metrics.'     ${n}' BUCKET shop AS ${name}`
    const query = `SELECT ${field(2, 'requests')}, ${field(3, 'sessions')},\n       mavg(agent.'     0'.metrics.'     2' BUCKET shop, 15m) AS trend LAST 6h`
    const tab = await Tab.open(browser, `${node.url}?query=${encodeURIComponent(query)}`)
    await tab.rows.first().waitFor()
    await tab.page.locator('.u-over').hover({ position: { x: 700, y: 120 } })
    await tab.page.screenshot({ path: resolve(docs, 'page-query.png') })
    await tab.close()
  }, 60_000)

  it('cardinality', async () => {
    const lines = ['checkout', 'search', 'basket', 'login', 'static', 'mail'].flatMap((app, i) => Array.from({ length: 180 >> i }, (_, m) => JSON.stringify({
      bucket: 'web', metric: ['agent', `     ${i}`, 'metrics', String(m + 1).padStart(6)], collection: 'pods', name: [`m${m}`],
      tags: { app, 'k8s:pod': `${app}-${(m >> 2) * 7919}`, dc: m % 3 ? 'eu' : 'us' },
    })))
    await fetch(`${node.url}tags`, { method: 'POST', headers: { 'X-Dalmatiner': '1' }, body: lines.join('\n') })
    const tab = await Tab.open(browser, `${node.url}?page=cardinality&by=values&name=app&sort=new`, { viewport: { width: 1280, height: 470 } })
    await until('all are counted', async () => (await tab.page.locator('.cardinality tbody tr').count()) === 6)
    await tab.page.screenshot({ path: resolve(docs, 'page-cardinality.png') })
    await tab.close()
    const other = await Tab.open(browser, node.url, { viewport: { width: 1280, height: 560 } })
    await other.page.getByRole('button', { name: 'Tags' }).click()
    await other.page.getByLabel('Collection').selectOption('pods')
    await other.page.getByRole('button', { name: /^dc/ }).click()
    await other.page.getByRole('button', { name: /^eu/ }).click()
    await other.page.getByRole('button', { name: /^app/ }).click()
    await other.page.getByRole('button', { name: /^search/ }).waitFor()
    await other.page.screenshot({ path: resolve(docs, 'page-tags.png') })
    await other.close()
  })

  it('events', async () => {
    const now = BigInt(Date.now()) * 1_000_000n
    const more = '"request":{"path":"/basket/checkout","headers":{"accept":"application/json","user-agent":"shop/2.1"},"retried":true,"coupon":null}'
    const lines = Array.from({ length: 40 }, (_, i) => {
      const failed = i % 9 === 2
      return `{"time":${now - BigInt(40 - i) * 17_123_456_789n},"host":"web${i % 3}","status":${failed ? 503 : 200},"took_ms":${(i * 7.3) % 40 | 0},"user":"${i % 2 ? 'ann' : 'bob'}"${failed ? `,${more}` : ''}}`
    })
    await fetch(`${node.url}events/requests`, { method: 'POST', body: lines.join('\n') })
    const tab = await Tab.open(browser, `${node.url}?page=events&bucket=requests&filter=${encodeURIComponent("user == 'bob' OR status >= 500")}`, { viewport: { width: 1280, height: 620 } })
    await tab.page.locator('.events tbody tr').first().waitFor()
    await tab.page.screenshot({ path: resolve(docs, 'page-events.png') })
    await tab.close()
  })

  it.runIf(!missing())('ducks', async () => {
    const room = new Room()
    onTestFinished(() => room.end())
    await room.start()
    await room.run('volume create debian --size 64M')
    await room.run('group create lab --volume debian')
    await room.run('group create office --volume debian')
    for (const i of [1, 2, 3, 4, 5]) await room.run(`device add 02:64:75:63:00:0${i} --name ${i < 4 ? `pc${i}` : `desk${i - 3}`} --group ${i < 4 ? 'lab' : 'office'} --mode ${i < 5 ? 'volatile' : 'persistent'}`)
    await room.run('emulate --bridge br0 --write 32M --mark installed')
    await room.run('group update lab --from pc1 --note "Debian 13, with all updates"')
    await room.run('group promote lab --note "Debian 13"')
    await room.run('emulate --bridge br0 --count 6 --write 16M --mark work --crash || true')
    const tab = await Tab.open(browser, `${room.url}?page=ducks`, { viewport: { width: 1280, height: 700 } })
    await tab.page.getByLabel('Password').fill(room.token)
    await tab.page.getByRole('button', { name: 'Log in' }).click()
    await tab.page.getByText('Machines that wait').waitFor()
    await tab.page.getByText(/^[0-9.]+ B\/s$/).first().waitFor()
    await tab.page.screenshot({ path: resolve(docs, 'page-ducks.png') })
    await room.run('emulate --bridge br0 --first-mac 02:64:75:63:00:04 --write 32M')
    await tab.page.getByRole('link', { name: 'desk1' }).click()
    await tab.page.locator('.u-over').waitFor()
    await room.run('emulate --bridge br0 --first-mac 02:64:75:63:00:04 --write 24M --uefi')
    await until('both boots are drawn', async () => (await tab.page.locator('.boot').count()) > 1)
    await tab.page.setViewportSize({ width: 1280, height: 1000 })
    await tab.page.screenshot({ path: resolve(docs, 'page-device.png') })
    await tab.close()
  }, 120_000)

  it('ring', async () => {
    const member = (i: number) => new Node('--set', `nodename=ddb${i}`, '--set', `cluster.listen=127.0.9.${i}:8599`, ...(i > 1 ? ['--set', 'cluster.join=127.0.9.1'] : []))
    const [first, second, third, fourth] = [1, 2, 3, 4].map(member) as [Node, Node, Node, Node]
    onTestFinished(async () => { for (const n of [first, second, third, fourth]) await n.end() })
    for (const n of [first, second, third]) await n.start()
    const tab = await Tab.open(browser, `${first.url}?page=ring`, { viewport: { width: 1280, height: 1290 } })
    const card = (name: string) => tab.page.getByRole('region', { name, exact: true })
    await until('three members', async () => (await card('Members').locator('tbody tr').count()) === 3 && !/under way|different/.test((await tab.page.locator('.ring > .head').textContent())!), 30_000)
    await first.fill('-prefix', 'shop', '-agents', '3', '-metrics', '200', '-fast', '-batch', '-walk', '-steps', '600')
    for (const n of [first, second, third]) await n.flush()
    await until('sizes are known', async () => (await card('Members').getByText(/ MiB$/).count()) === 3, 30_000)
    await fourth.start()
    await card('Members').getByText('Not a member: ddb4').waitFor()
    await tab.page.getByRole('form', { name: 'Stage a change' }).locator('select').nth(1).selectOption('ddb4')
    await tab.page.getByRole('button', { name: 'Stage', exact: true }).click()
    await card('Plan').locator('pre').waitFor()
    await card('Plan').getByRole('button', { name: 'Commit …' }).click()
    await tab.page.screenshot({ path: resolve(docs, 'page-ring.png') })
    await card('Transfers').getByRole('button', { name: 'Pause …' }).click()
    await card('Transfers').getByRole('button', { name: 'Pause', exact: true }).click()
    await card('Transfers').getByRole('button', { name: 'Resume …' }).waitFor()
    await card('Plan').getByLabel('Type commit').fill('commit')
    await card('Plan').getByRole('button', { name: 'Commit', exact: true }).click()
    await card('Moves').locator('tbody tr').first().waitFor()
    if (process.env.RING_MOVES) await tab.page.screenshot({ path: process.env.RING_MOVES })
    await tab.close()
  }, 120_000)
})
