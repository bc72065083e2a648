// What is exported is every value, not the columns of the chart.

import { runQuery, type Result } from '../api'
import { chartData } from './data'
import { exact } from '../format'

function cell(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A table of comma separated values: one line a time in UTC, gaps and what damage took are empty. */
export function csv(result: Result): string {
  const { x, lines } = chartData(result)
  const out = [['time', ...lines.map((l) => l.name)].map(cell).join(',')]
  x.forEach((t, i) => {
    out.push([new Date(Math.round(t * 1000)).toISOString(), ...lines.map((l) => exact(l.values[i]))].join(','))
  })
  return out.join('\r\n') + '\r\n'
}

/**
 * Runs a query for all its values and gives them as a file. Only JSON can have
 * older values: it says which they are.
 */
export async function download(query: string, form: 'csv' | 'json', older: boolean): Promise<void> {
  const reply = await runQuery(query, { older: older && form === 'json' })
  const text = form === 'csv' ? csv(reply.value) : reply.text
  const url = URL.createObjectURL(new Blob([text], { type: form === 'csv' ? 'text/csv' : 'application/json' }))
  const a = document.createElement('a')
  a.href = url
  a.download = `dalmatiner-${new Date(reply.value.start).toISOString().slice(0, 19).replaceAll(':', '')}.${form}`
  a.click()
  URL.revokeObjectURL(url)
}
