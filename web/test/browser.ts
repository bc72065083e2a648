import { existsSync } from 'node:fs'
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core'

const places = [process.env.CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

export function launch(): Promise<Browser> {
  const executablePath = places.find((p) => p && existsSync(p))
  if (!executablePath) throw new Error('no Chromium: install the package chromium, or set CHROMIUM to the path of one')
  // Continuous integration runs as root, where the sandbox does not start.
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
}

/** A page of its own browser context, and what went wrong in it. */
export class Tab {
  readonly wrong: string[] = []
  readonly hosts = new Set<string>()

  private constructor(readonly page: Page) {
    page.on('console', (m) => {
      // Tests are about a node that is gone, too, and about what a node refuses.
      if (m.type() === 'error' && !/ERR_CONNECTION_REFUSED|status of 40[0149]|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(m.text())) this.wrong.push(m.text())
    })
    page.on('pageerror', (e) => this.wrong.push(String(e)))
    page.on('request', (r) => {
      const { host, protocol } = new URL(r.url())
      if (protocol !== 'blob:' && protocol !== 'data:') this.hosts.add(host)
    })
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, timezoneId: 'UTC', ...options })
    context.setDefaultTimeout(15_000)
    const tab = new Tab(await context.newPage())
    await tab.page.goto(url)
    return tab
  }

  get editor(): Locator {
    return this.page.locator('.cm-content')
  }

  get rows(): Locator {
    return this.page.locator('.legend tbody tr')
  }

  get query(): string {
    return new URL(this.page.url()).searchParams.get('query') ?? ''
  }

  /** Puts a text in place of what the editor has. */
  async write(text: string): Promise<void> {
    await this.editor.click()
    await this.page.keyboard.press('Control+a')
    await this.page.keyboard.press('Delete')
    await this.page.keyboard.insertText(text)
  }

  async ask(text: string): Promise<void> {
    await this.write(text)
    await this.page.keyboard.press('Control+Enter')
  }

  async close(): Promise<void> {
    await this.page.context().close()
  }
}

/** Waits until a condition holds. */
export async function until(what: string, holds: () => Promise<boolean>, timeout = 15_000): Promise<void> {
  const end = Date.now() + timeout
  for (;;) {
    if (await holds()) return
    if (Date.now() > end) throw new Error(`waited ${timeout} ms in vain: ${what}`)
    await new Promise((next) => setTimeout(next, 50))
  }
}
