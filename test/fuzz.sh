#!/usr/bin/env bash
# Runs every fuzz target of the module in this directory: for so many inputs each, as 15000x,
# or so long, as 60s. A count is the one to rely on: Go up to 1.26 now and then
# calls the end of the time a failure (go.dev/issue/75804).
set -euo pipefail
budget=${1:-15000x}
go list -f '{{.Dir}}' ./... | while read -r dir; do
  grep -hs '^func Fuzz' "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | while read -r target; do
    echo "fuzz ${dir#"$PWD"/} $target"
    # Inputs of targets with goroutines cover a little else each time: making
    # them smaller would take all the budget.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" -fuzzminimizetime 1x "$dir" </dev/null | grep -v '^fuzz: elapsed' || exit 1
  done || [ "${PIPESTATUS[0]}" -eq 1 ]
done
