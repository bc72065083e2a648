// Whether the node answers. When it does not, it is asked every second until
// it does; whoever listens then loads again what it shows.

type Listener = () => void

class Connection {
  up = true
  /** How often the node came back: a dependency of effects that load. */
  epoch = 0
  private listeners = new Set<Listener>()
  private timer: number | undefined

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  lost(): void {
    if (!this.up) return
    this.up = false
    this.tell()
    this.wait()
  }

  answered(): void {
    if (this.up) return
    window.clearTimeout(this.timer)
    this.up = true
    this.epoch++
    this.tell()
  }

  private wait(): void {
    this.timer = window.setTimeout(async () => {
      try {
        if ((await fetch('./ready')).ok) this.answered()
      } catch {
        // still gone
      }
      if (!this.up) this.wait()
    }, 1000)
  }

  private tell(): void {
    for (const listener of this.listeners) listener()
  }
}

export const connection = new Connection()
