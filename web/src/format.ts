// Numbers, sizes and times as people read them.

const steps = ['', 'k', 'M', 'G', 'T', 'P', 'E']
const small = ['', 'm', 'µ', 'n', 'p']

/** Below it numbers of a unit get a prefix: there are ms, but no thousandths of a percent. */
const least = (unit: string) => (unit && unit !== '%' && unit !== 'percent' ? 1 : 0.001)

/** A number with up to four digits and an SI prefix. */
export function si(v: number | null | undefined, unit = ''): string {
  if (v === null || v === undefined || Number.isNaN(v)) return '–'
  const a = Math.abs(v)
  const tail = unit ? ` ${unit}` : ''
  if (a === 0 || !Number.isFinite(v)) return `${v}${tail}`
  if (a >= 1e21 || a < 1e-12) return v.toExponential(2) + tail
  let i = 0
  let scaled = a
  if (a >= 10_000) for (; scaled >= 999.95 && i < steps.length - 1; i++) scaled /= 1000
  else if (a < least(unit)) for (; scaled < 1 && i > 1 - small.length; i--) scaled *= 1000
  const prefix = i >= 0 ? steps[i] : small[-i]
  const text = trim(Math.sign(v) * scaled)
  return unit || prefix ? `${text} ${prefix}${unit}`.trimEnd() : text
}

/** The ticks of an axis: one prefix for all, and as many digits as tell them apart. */
export function tickTexts(ticks: number[], unit = ''): string[] {
  const most = Math.max(...ticks.map(Math.abs))
  const distance = ticks.length > 1 ? Math.abs(ticks[1]! - ticks[0]!) : most
  if (!most || most >= 1e21 || most < 1e-12) return ticks.map((v) => si(v, unit))
  let i = 0
  if (most >= 10_000) i = Math.min(steps.length - 1, Math.floor(Math.log10(most) / 3))
  else if (most < least(unit)) i = Math.max(1 - small.length, Math.floor(Math.log10(most) / 3))
  const scale = 1000 ** i
  let digits = Math.min(12, Math.max(0, -Math.floor(Math.log10(distance / scale) + 1e-9)))
  const fine = (distance / scale) * 10 ** digits
  if (Math.abs(fine - Math.round(fine)) > 1e-6) digits++ // 2.5, 0.25
  const tail = `${i >= 0 ? steps[i] : small[-i]}${unit}`
  return ticks.map((v) => (tail && v !== 0 ? `${(v / scale).toFixed(digits)} ${tail}` : `${Number((v / scale).toFixed(digits))}`))
}

function trim(v: number): string {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(v) || 1)))
  return String(Number(v.toFixed(Math.min(digits, 12))))
}

/** A number in full, as it is exported. */
export function exact(v: number | null | undefined): string {
  return v === null || v === undefined ? '' : String(v)
}

/** A whole number with blanks between thousands. */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f')
}

/** A size in bytes, in units of 1024. */
export function bytes(n: number): string {
  let i = 0
  for (; Math.abs(n) >= 1024 && i < 5; i++) n /= 1024
  return `${i === 0 ? n : Number(n.toPrecision(3))} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][i]}`
}

/** A duration given in ms, rounded. */
export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`
  if (ms < 60_000) return `${Number((ms / 1000).toPrecision(3))} s`
  const units: [string, number][] = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]]
  const i = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[i]!
  const whole = Math.floor(ms / size)
  const next = units[i + 1]
  const rest = next ? Math.floor((ms - whole * size) / next[1]) : 0
  return rest ? `${whole} ${unit} ${rest} ${next![0]}` : `${whole} ${unit}`
}

/** A share as a percentage that is 100 only when nothing is missing. */
export function percent(share: number): string {
  if (share >= 1) return '100 %'
  return `${Math.floor(share * 1000) / 10} %`
}

const pad = (n: number, width = 2) => String(n).padStart(width, '0')

/** A moment in local time or UTC, with fractions of seconds where there are any. */
export function moment(ms: number, utc: boolean): string {
  const d = new Date(utc ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000)
  const text = `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())} ${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`
  const fraction = Math.round(((ms % 1000) + 1000) % 1000)
  return fraction ? `${text}.${pad(fraction, 3)}` : text
}

/** A moment given in ns to the ms. */
export function momentOfNs(ns: bigint, utc: boolean): string {
  const text = moment(Number(ns / 1_000_000n), utc)
  return text.includes('.') ? text : `${text}.000`
}

/** A moment given in ns with all its digits, in UTC, and the number itself. */
export function momentInFull(ns: bigint): string {
  const second = moment(Number(ns / 1_000_000_000n) * 1000, true)
  return `${second}.${pad(Number(ns % 1_000_000_000n), 9)} UTC\n${ns} ns`
}
