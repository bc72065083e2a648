import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launch, Tab, until } from './browser'
import { Node } from './node'
import { missing, Room } from './room'

const lacks = missing()
if (lacks) {
  const text = `the page of ducks needs ${lacks}`
  if (process.env.DUCKS_NO_SKIP) throw new Error(text)
  console.warn(`SKIPPED: ${text}`)
}

describe.runIf(!lacks)('ducks', () => {
  const room = new Room()
  const alone = new Node()
  let browser: Browser
  let tab: Tab
  const card = (name: string) => tab.page.getByRole('region', { name, exact: true })
  const open = async (search: string, options = {}) => (tab = await Tab.open(browser, room.url + search, options))
  const login = async (secret: string) => {
    await tab.page.getByLabel('Password').fill(secret)
    await tab.page.getByRole('button', { name: 'Log in' }).click()
  }

  beforeAll(async () => {
    await Promise.all([room.start(), alone.start()])
    browser = await launch()
  })

  afterAll(async () => {
    await browser?.close()
    await Promise.all([room.end(), alone.end()])
  })

  afterEach(async () => {
    expect(tab.wrong).toEqual([])
    await tab.close()
  })

  it('shows a room from its first machine to a new version', async () => {
    await open('?page=ducks')
    await tab.page.getByRole('navigation').getByRole('link', { name: 'Ducks', exact: true }).waitFor()
    await login('wrong')
    await tab.page.getByRole('alert').getByText('token').waitFor()
    await login(room.token)
    await tab.page.getByText('There is no device yet.').waitFor()
    await room.run('volume create linux --size 64M')
    await room.run('group create lab --volume linux')

    const mac = '02:64:75:63:00:01'
    await room.run('emulate --bridge br0 || true')
    const approval = tab.page.getByRole('form', { name: `Add ${mac}` })
    await approval.getByLabel('Name').fill('pc 1')
    await approval.getByRole('button', { name: 'Add' }).click()
    await approval.getByRole('alert').getByText('a name has').waitFor()
    await approval.getByLabel('Name').fill('pc1')
    await approval.getByRole('button', { name: 'Add' }).click()
    const row = card('Group lab').getByRole('row').filter({ hasText: 'pc1' })
    await row.getByText('version 1, anew').waitFor()

    await room.run('emulate --bridge br0 --write 4M --mark golden')
    await row.getByText(/up, .* ago/).waitFor()
    await row.getByText('off').waitFor()

    await tab.page.getByRole('button', { name: 'Images' }).click()
    const group = card('Group lab')
    await group.getByRole('button', { name: 'Update from a device …' }).click()
    const update = tab.page.getByRole('form', { name: 'Update lab' })
    await update.getByLabel('Note').fill('with all updates')
    await update.getByRole('button', { name: 'Update' }).click()
    const version = (n: number) => group.locator('tbody tr').filter({ has: tab.page.locator(`td:first-child:text-matches("^${n}")`) })
    await version(2).getByText('in use').waitFor()
    await version(2).getByText('with all updates').waitFor()
    await version(2).getByRole('button', { name: 'Files' }).click()
    await card('Files of version 2').getByText(/not compared: unknown filesystem/).waitFor()
    await version(1).getByRole('button', { name: 'Use …' }).click()
    await version(1).getByRole('button', { name: 'Use', exact: true }).click()
    await version(1).getByText('in use').waitFor()
    expect(await room.run('plan')).toMatch(/pc1 +lab +1 /)
    await version(2).getByRole('button', { name: 'Use …' }).click()
    await version(2).getByRole('button', { name: 'Use', exact: true }).click()
    await version(2).getByText('in use').waitFor()
    await group.getByRole('button', { name: 'Promote …' }).click()
    await group.getByRole('button', { name: 'Promote', exact: true }).click()
    await until('the volume has it', async () => (await room.run('volume list')).includes('2'))
  })

  it('shows networks to who is limited to one', async () => {
    await room.run('network create guests --devices 5')
    const token = (await room.run('token create guest --role operator --network guests')).trim().split('\n')[0]!
    await open('?page=ducks')
    await login(token)
    await tab.page.getByText('There is no device yet.').waitFor()
    await tab.page.getByRole('button', { name: 'Images' }).click()
    const networks = card('Networks')
    await networks.getByText('0 of 5').waitFor()
    expect(await networks.getByRole('row').count()).toBe(2) // the heading, and one network
    expect(await tab.page.getByText('linux').count()).toBe(0)
    tab.wrong.splice(0, tab.wrong.length, ...tab.wrong.filter((text) => !text.includes('403'))) // it may not look at the pool
    await room.run('token delete guest')
    await room.run('network delete guests')
  })

  it('shows a device, its boots and what it moves', async () => {
    await open('?page=ducks&device=pc1')
    await login(room.token)
    await card('Boots').getByRole('img').first().waitFor()
    expect(await card('Boots').getByRole('img').first().getAttribute('aria-label')).toMatch(/^dhcp after 0\.0 s, .*script after .*up after/)
    await until('the store has figures', async () => (await tab.page.locator('.u-over').count()) === 1)
    const change = tab.page.getByRole('form', { name: 'Change the device' })
    await change.getByLabel('Mode').selectOption('persistent')
    await change.getByLabel('Version').selectOption('1')
    await change.getByLabel('Space, GiB').fill('0.5')
    await change.getByRole('button', { name: 'Change' }).click()
    await tab.page.locator('.facts').getByText('persistent').waitFor()
    expect(await room.run('device show pc1')).toMatch(/space +512\.0M/)
    expect(await room.run('device list')).toMatch(/persistent\s+version 1/)
    await tab.page.getByRole('button', { name: 'Begin anew …' }).click()
    await tab.page.getByRole('button', { name: 'Begin anew', exact: true }).click()
    await tab.page.locator('.facts').getByText('it begins anew').waitFor()
    await tab.page.getByRole('button', { name: 'Keep all the same' }).click()
    await tab.page.locator('.facts').getByText('it keeps what it wrote').waitFor()
    await room.run('emulate --bridge br0 --write 4M --crash')
    await tab.page.getByText('its disk is in use').waitFor()
    await tab.page.getByRole('button', { name: 'Log out' }).click()
    await tab.page.getByRole('form', { name: 'Log in to ducks' }).waitFor()
  })

  it('shows what somebody should look at', async () => {
    await room.run('pool status; head -c 400M /dev/urandom > pool/fill; sync')
    await open('?page=ducks')
    await login(room.token)
    await card('Alerts').getByText(/^pool: \d+ of 512 MiB are free/).waitFor()
    await room.run('pool status; rm pool/fill; sync')
    await until('it is over', async () => (await card('Alerts').count()) === 0)
  })

  it('shows who is limited to a group that group', async () => {
    await room.run('group create annex --volume linux')
    const token = (await room.run('token create limited --role viewer --group annex')).trim().split('\n')[0]!
    await open('?page=ducks')
    await login(token)
    await tab.page.getByText('There is no device yet.').waitFor()
    await tab.page.getByRole('button', { name: 'Images' }).click()
    await card('Group annex').waitFor()
    expect(await card('Group lab').count()).toBe(0)
    tab.wrong.splice(0, tab.wrong.length, ...tab.wrong.filter((text) => !text.includes('403'))) // it may not look at the pool
  })

  it('fits on a narrow screen', async () => {
    await open('?page=ducks', { viewport: { width: 390, height: 844 } })
    await login(room.token)
    await card('Group lab').waitFor()
    for (const page of ['Images', 'Room']) {
      await tab.page.getByRole('button', { name: page }).click()
      await tab.page.getByRole('heading', { name: page, exact: true }).waitFor()
      expect(await tab.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), page).toBe(true)
    }
  })

  it('says that a node knows no ducks', async () => {
    tab = await Tab.open(browser, `${alone.url}?page=ducks`)
    await tab.page.getByText('This node knows no ducks').waitFor()
    expect(await tab.page.getByRole('navigation').getByRole('link', { name: 'Ducks', exact: true }).count()).toBe(0)
  })
})
