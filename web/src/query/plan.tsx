import { useMemo, useState } from 'preact/hooks'
import type { Plan, Step } from '../api'
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
  const slowest = Math.max(1, ...plan.steps.map((s) => s.time_us))
  return (
    <div class="plan">
      <p class="note">
        {count(plan.steps.length)} steps in {count(plan.rounds)} {plan.rounds === 1 ? 'round' : 'rounds'} of up to {count(plan.slots)} slots, charged with {bytes(plan.memory)} of memory
      </p>
      <ul role="tree" aria-label="Plan of the query">
        {tree.map((b, i) => <Node key={i} branch={b} slowest={slowest} />)}
      </ul>
    </div>
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
