#!/usr/bin/env bash
# Runs every fuzz target of the repository: for so many inputs each, as 15000x,
# or so long, as 60s. A count is the one to rely on: Go up to 1.26 now and then
# calls the end of the time a failure (go.dev/issue/75804).
set -euo pipefail
budget=${1:-15000x}
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '^func Fuzz' internal | while read -r file; do
  dir=./$(dirname "$file")
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
    echo "fuzz $dir $target"
    # Inputs of targets with goroutines cover a little else each time: making
    # them smaller would take all the budget.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" -fuzzminimizetime 1x "$dir" </dev/null | grep -v '^fuzz: elapsed' || exit 1
  done
done
