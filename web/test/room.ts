// A real room for the tests of the page: ducks, its disks and emulated machines, in namespaces of their own.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const bin = resolve(import.meta.dirname, '../../bin')

/** What is missing for a room; empty: nothing. */
export function missing(): string {
  if (process.getuid?.() !== 0) return 'root'
  const tools = { tgtd: 'tgt', 'mkfs.btrfs': 'btrfs-progs', ip: 'iproute2', nsenter: 'util-linux' }
  const absent = Object.entries(tools).filter(([tool]) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0)
  return absent.map(([, name]) => name).join(', ')
}

export class Room {
  private readonly dir = mkdtempSync(join(tmpdir(), 'dalmatiner-room-'))
  private process?: ChildProcess
  private relay?: Server
  private said = ''
  private heard: (() => void)[] = []
  token = ''
  url = ''

  async start(): Promise<void> {
    const p = spawn('unshare', ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', join(import.meta.dirname, 'room.sh'), bin, this.dir])
    this.process = p
    for (const stream of [p.stdout, p.stderr]) stream.on('data', (text: Buffer) => {
      this.said += text
      for (const tell of this.heard.splice(0)) tell()
    })
    p.once('exit', () => {
      this.said += '\ndone ended\n'
      for (const tell of this.heard.splice(0)) tell()
    })
    const [, token] = await this.until(/ready (\S+)\n/)
    this.token = token!
    // A browser is outside of the namespaces: its connections are taken in.
    this.relay = createServer({ allowHalfOpen: true }, (outside) => {
      const inside = spawn('nsenter', ['--target', String(p.pid), '--net', 'bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/8080; cat <&3 & cat >&3; kill $!'])
      outside.pipe(inside.stdin)
      inside.stdout.pipe(outside)
      outside.once('error', () => inside.kill())
      outside.once('close', () => inside.kill())
      inside.stdin.once('error', () => outside.destroy())
    })
    await new Promise<void>((done) => this.relay!.listen(0, '127.0.0.1', done))
    this.url = `http://127.0.0.1:${(this.relay.address() as AddressInfo).port}/`
  }

  /** Waits for something to be said, and takes all up to its end. */
  private async until(what: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this.said)
      if (found) {
        this.said = this.said.slice(found.index + found[0].length)
        return found
      }
      if (this.said.includes('done ended')) throw new Error(this.said)
      await new Promise<void>((heard) => this.heard.push(heard))
    }
  }

  /** Runs a command of ducks. */
  async run(line: string): Promise<string> {
    this.process!.stdin!.write(`${line}\n`)
    const [all, status] = await this.until(/[^]*?done (\d+)\n/)
    if (status !== '0') throw new Error(`ducks ${line}:\n${all}`)
    return all
  }

  async end(): Promise<void> {
    this.relay?.close()
    const p = this.process
    if (p && p.exitCode === null) {
      const ended = new Promise((done) => p.once('exit', done))
      p.stdin!.end()
      await ended
    }
    rmSync(this.dir, { recursive: true, force: true })
  }
}
