#!/usr/bin/env bash
# Runs every fuzz target of the module in this directory: for so many inputs each, as 15000x,
# or so long, as 60s. A count is the one to rely on: Go up to 1.26 now and then
# calls the end of the time a failure (go.dev/issue/75804).
set -euo pipefail
shopt -s nullglob
budget=${1:-15000x}
go list -f '{{.Dir}}' ./... | while read -r dir; do
  tests=("$dir"/*_test.go)
  [ ${#tests[@]} -gt 0 ] || continue
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "${tests[@]}"); do
    echo "fuzz ${dir#"$PWD"/} $target"
    # Inputs of targets with goroutines cover a little else each time: making
    # them smaller would take all the budget.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" -fuzzminimizetime 1x "$dir" </dev/null | grep -v '^fuzz: elapsed'
  done
done
