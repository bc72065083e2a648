import { describe, expect, it } from 'vitest'
import type { Reply, Result, Series } from '../api'
import { askFitting, fitOf } from './columns'

const second = 1000
const columns = (length: number, interval: number | null, more: Partial<Series> = {}): Series =>
  ({ type: 'metrics', name: 'a', resolution: length, bucket_resolution: second, interval, values: [1, 2, 3], min: [1, 2, 3], max: [1, 2, 3], coverage: 1, ...more })
const last = (seconds: number) => `SELECT x BUCKET b LAST ${seconds}s`

/** Seconds per column that a node makes of a range; of one that it moves it keeps a column for the end. */
const made = (seconds: number, width: number, moved: boolean) => Math.ceil(seconds / Math.max(1, moved ? width - 1 : width))

describe('the width that fits', () => {
  it('has columns of the interval of the sender where the range is so many intervals, and never shorter ones', () => {
    for (const interval of [2, 3, 7, 10, 60]) {
      for (let seconds = interval; seconds < 4000; seconds++) {
        const forms = [[last(seconds), true], [`SELECT x BUCKET b AFTER ${second} FOR ${seconds}s`, true], [`SELECT x BUCKET b AFTER 4200000 FOR ${seconds}s`, false]] as const
        for (const [query, moved] of forms) {
          const length = made(seconds, fitOf(query, [columns(second, interval * second)])!.width, moved)
          if (length < interval || (seconds % interval === 0 && length > interval)) throw new Error(`${length} s, sent every ${interval} s: ${query}`)
        }
      }
    }
  })
  it('looks at the answer where the text does not say how long the range is', () => {
    const { width } = fitOf('SELECT x BUCKET b BETWEEN NOW AND 1h AGO', [columns(3 * second, 10 * second, { values: Array(1201).fill(1) })])!
    expect([made(3600, width, true), made(3600, width, false)]).toEqual([10, 10])
  })
  it('is that of the fastest sender', () => {
    expect(fitOf(last(60), [columns(second, 10 * second), columns(second, null), columns(second, 5 * second)])?.interval).toBe(5 * second)
    expect(fitOf(last(60), [columns(second, 10 * second), columns(second, second)])).toEqual({ interval: second, width: Infinity })
  })
  it('is none of values, of events and without an interval', () => {
    expect(fitOf(last(60), [columns(second, 10 * second, { min: undefined }), columns(second, null)])).toBeUndefined()
    expect(fitOf(last(60), [])).toBeUndefined()
  })
})

describe('asking', () => {
  /** A node that answers with columns of so many seconds for each width that is asked for. */
  const node = (interval: number | null, seconds = 3600) => {
    const asked: number[] = []
    const ask = async (most: number): Promise<Reply<Result>> => {
      asked.push(most)
      return { value: { start: 0, query_time: 1, results: [columns(second * made(seconds, Math.min(1200, most), true), interval)] }, text: '', took: 1 }
    }
    return { ask, asked }
  }
  it('asks again once where columns are shorter than the interval', async () => {
    const slow = node(10 * second)
    const first = await askFitting(slow.ask, last(3600))
    expect(slow.asked).toEqual([Infinity, 400])
    expect(first.reply.value.results[0]!.resolution).toBe(10 * second)
    // And the next time at once.
    expect((await askFitting(slow.ask, last(3600), first.fit)).fit).toBe(first.fit)
    expect(slow.asked).toEqual([Infinity, 400, 400])
  })
  it('asks once where they are not', async () => {
    for (const n of [node(second), node(null), node(10 * second, 86_400)]) {
      await askFitting(n.ask, last(3600))
      expect(n.asked).toEqual([Infinity])
    }
  })
  it('goes back to more columns when the sender becomes faster, and keeps them while it is silent', async () => {
    const fit = { interval: 10 * second, width: 400 }
    expect(await askFitting(node(second).ask, last(3600), fit)).toMatchObject({ fit: { interval: second, width: Infinity } })
    expect((await askFitting(node(null).ask, last(3600), fit)).fit).toBe(fit)
  })
})
