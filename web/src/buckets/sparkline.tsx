/** A line without axes. */
export function Sparkline({ values, width = 90, height = 22 }: { values: number[]; width?: number; height?: number }) {
  const top = Math.max(...values, 0) || 1
  const x = (i: number) => (i / Math.max(1, values.length - 1)) * (width - 2) + 1
  const y = (v: number) => height - 2 - (v / top) * (height - 4)
  const line = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ')
  return (
    <svg class="spark" width={width} height={height} role="img" aria-label={`up to ${Math.round(top)} points per second`}>
      <polygon points={`1,${height - 2} ${line} ${width - 1},${height - 2}`} />
      <polyline points={line} />
    </svg>
  )
}
