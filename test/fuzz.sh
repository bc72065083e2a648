#!/usr/bin/env bash
# Runs every fuzz target of the module in this directory: for so many inputs each, as 15000x,
# or so long, as 60s. A count is the one to rely on: Go up to 1.26 now and then
# calls the end of the time a failure (go.dev/issue/75804).
# Two targets run at a time, each with one worker: building and starting one takes as long as
# its inputs.
set -euo pipefail
shopt -s nullglob
export BUDGET=${1:-15000x}
one() {
  local out
  # Inputs of targets with goroutines cover a little else each time: making
  # them smaller would take all the budget.
  if out=$(go test -run '^$' -parallel 1 -fuzz "^$2\$" -fuzztime "$BUDGET" -fuzzminimizetime 1x "$1" </dev/null 2>&1); then
    echo "fuzz ${1#"$PWD"/} $2: $(tail -n 1 <<<"$out")"
  else
    echo "fuzz ${1#"$PWD"/} $2"
    grep -v '^fuzz: elapsed' <<<"$out"
    exit 255 # ends xargs
  fi
}
export -f one
go list -f '{{.Dir}}' ./... | while read -r dir; do
  tests=("$dir"/*_test.go)
  [ ${#tests[@]} -gt 0 ] || continue
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "${tests[@]}"); do
    printf '%s %s\n' "$dir" "$target"
  done
done | xargs -P 2 -L 1 bash -c 'one "$@"' fuzz
