import { useMemo, useState } from 'preact/hooks'
import type { EventRead, Plan, Step } from '../api'
import { bytes, count, duration } from '../format'
import { Bar } from './legend'

interface Branch {
  step: Step
  before: boolean // it is written out above
  inputs: Branch[]
}

/** The tree of a plan: a step that several use is written out where it comes first. */
export function branches(plan: Plan): Branch[] {
  const byId = new Map(plan.steps.map((s) => [s.id, s]))
  const shown = new Set<number>()
  const branch = (id: number): Branch => {
    const step = byId.get(id)!
    const before = shown.has(id)
    shown.add(id)
    return { step, before, inputs: before ? [] : (step.inputs ?? []).map(branch) }
  }
  return plan.fields.map(branch)
}

/** The plan of a query as a tree, with what each step cost. */
export function PlanTree({ plan }: { plan: Plan }) {
  const tree = useMemo(() => branches(plan), [plan])
  const events = plan.events ?? []
  const slowest = Math.max(1, ...plan.steps.map((s) => s.time_us), ...events.map((e) => e.time_us))
  return (
    <div class="plan">
      <p class="note">{summary(plan)}</p>
      <ul role="tree" aria-label="Plan of the query">
        {tree.map((b, i) => <Node key={i} branch={b} slowest={slowest} />)}
        {events.map((e, i) => <Events key={i} read={e} slowest={slowest} />)}
      </ul>
    </div>
  )
}

/** What a plan has in all. A query of events alone has no steps. */
export function summary(plan: Plan): string {
  const parts = []
  if (plan.steps.length > 0) {
    const rounds = `${count(plan.rounds)} ${plan.rounds === 1 ? 'round' : 'rounds'}`
    parts.push(`${count(plan.steps.length)} ${plan.steps.length === 1 ? 'step' : 'steps'} in ${rounds} of up to ${count(plan.slots)} slots, charged with ${bytes(plan.memory)} of memory`)
  }
  const events = plan.events ?? []
  if (events.length > 0) {
    const sum = (of: (e: EventRead) => number) => events.reduce((n, e) => n + of(e), 0)
    parts.push(`${count(sum((e) => e.read))} events read, ${count(sum((e) => e.found))} found`)
  }
  return parts.join('; ') || 'nothing is read'
}

/** The read of one EVENTS field. */
function Events({ read, slowest }: { read: EventRead; slowest: number }) {
  return (
    <li role="treeitem">
      <div class="step">
        <button class="fold" disabled aria-label="Fold">·</button>
        <code>{read.name}</code>
        <span class="note">
          {`${count(read.found)} of ${count(read.read)} events found, at most ${count(read.limit)} in a result`}
          {read.blocks > 0 && `, ${bytes(read.bytes)} in ${count(read.blocks)} blocks of ${count(read.files)} files read`}
          {read.in_memory > 0 && `, ${count(read.in_memory)} in memory`}
          {read.lost > 0 && <b class="lost">, {count(read.lost)} lost to damage</b>}
        </span>
        <span class="cost"><Bar share={read.time_us / slowest} /> {duration(read.time_us / 1000)}</span>
      </div>
    </li>
  )
}

function Node({ branch, slowest }: { branch: Branch; slowest: number }) {
  const [open, setOpen] = useState(true)
  const { step, before, inputs } = branch
  const r = step.read
  return (
    <li role="treeitem" aria-expanded={inputs.length ? open : undefined}>
      <div class="step">
        <button class="fold" disabled={!inputs.length} aria-label={open ? 'Fold' : 'Unfold'} onClick={() => setOpen(!open)}>
          {inputs.length ? (open ? '▾' : '▸') : '·'}
        </button>
        <code>{step.name}</code>
        <span class="note">
          {before ? 'see above' : `${count(step.values)} values, every ${duration(step.resolution)}`}
          {!before && step.uses > 1 && `, used ${step.uses} times`}
          {!before && r && `, ${count(r.set)} of ${count(r.slots)} slots set`}
          {!before && r?.unknown && <b class="lost">, {count(r.unknown.slots)} unknown ({r.unknown.why.join('; ')})</b>}
          {!before && r && r.decoded > 0 && `, ${count(r.decoded)} decoded`}
          {!before && r && r.headers + r.rollups > 0 && `, ${count(r.headers)} headers, ${count(r.rollups)} rollups`}
          {!before && r && r.bytes > 0 && `, ${bytes(r.bytes)} read`}
        </span>
        {!before && <span class="cost"><Bar share={step.time_us / slowest} /> {duration(step.time_us / 1000)}</span>}
      </div>
      {open && inputs.length > 0 && (
        <ul role="group">{inputs.map((b, i) => <Node key={i} branch={b} slowest={slowest} />)}</ul>
      )}
    </li>
  )
}
