// A real node and a real load for the tests of the page.

import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const bin = resolve(import.meta.dirname, '../../bin')

function program(name: string): string {
  const path = join(bin, name)
  if (!existsSync(path)) throw new Error(`${path} is not there: run make web build first`)
  return path
}

/** Ends a process and waits until it has ended. */
async function stop(p: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!p || p.exitCode !== null || p.signalCode !== null) return
  const ended = new Promise((done) => p.once('exit', done))
  p.kill(signal)
  await ended
}

export class Node {
  readonly dir = mkdtempSync(join(tmpdir(), 'dalmatiner-page-'))
  private process?: ChildProcess
  private readonly more: string[]
  private loads: ChildProcess[] = []
  tcp = '127.0.0.1:0'
  http = '127.0.0.1:0'
  graphite = '' // where it takes lines, if it was told to

  constructor(...more: string[]) {
    this.more = more
  }

  get url(): string {
    return `http://${this.http}/`
  }

  /** Starts the node, again at the addresses it had. */
  start(): Promise<void> {
    const p = spawn(program('ddb'), ['serve', '--data-dir', join(this.dir, 'data'), '--tcp-addr', this.tcp, '--http-addr', this.http, ...this.more])
    this.process = p
    let log = ''
    return new Promise((done, fail) => {
      p.stderr!.on('data', (text: Buffer) => {
        log += text
        const ready = /msg=ready tcp_addr=(\S+) http_addr=(\S+)/.exec(log)
        if (!ready) return
        this.tcp = ready[1]!
        this.http = ready[2]!
        this.graphite = /msg="graphite lines" addr=(\S+)/.exec(log)?.[1] ?? ''
        done()
      })
      p.once('exit', (code) => fail(new Error(`ddb ended with ${code}:\n${log}`)))
    })
  }

  /** Sends lines of Graphite. */
  lines(text: string): Promise<void> {
    const [host, port] = this.graphite.split(':')
    return new Promise((done, fail) => connect(Number(port), host).on('error', fail).on('close', () => done()).end(text).resume())
  }

  kill(): Promise<void> {
    return stop(this.process, 'SIGKILL')
  }

  /** Ends the node as an operator does. */
  stop(): Promise<void> {
    return stop(this.process, 'SIGTERM')
  }

  /** Writes everything in memory to a segment. */
  async flush(): Promise<void> {
    const answer = await fetch(`${this.url}admin/flush`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Dalmatiner': '1' }, body: '{}' })
    if (!answer.ok) throw new Error(await answer.text())
  }

  /** Flips a bit in the points of the newest flush; the node must not run. */
  damage(): void {
    const dir = join(this.dir, 'data/flush')
    const path = join(dir, readdirSync(dir).filter((n) => n.endsWith('.seg')).sort().at(-1)!)
    const bytes = readFileSync(path)
    bytes[20]! ^= 0x10
    writeFileSync(path, bytes)
  }

  /** Runs haggar to its end. */
  fill(...args: string[]): Promise<void> {
    const p = spawn(program('haggar'), ['-carbon', this.tcp, ...args], { stdio: 'ignore' })
    return new Promise((done, fail) => p.once('exit', (code) => (code === 0 ? done() : fail(new Error(`haggar ended with ${code}`)))))
  }

  /** Starts a load that goes on. */
  load(...args: string[]): void {
    this.loads.push(spawn(program('haggar'), ['-carbon', this.tcp, ...args], { stdio: 'ignore' }))
  }

  async end(): Promise<void> {
    for (const p of this.loads) await stop(p, 'SIGKILL')
    await stop(this.process, 'SIGTERM')
    rmSync(this.dir, { recursive: true, force: true })
  }
}
