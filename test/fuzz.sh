#!/usr/bin/env bash
# Runs every fuzz target of the repository for the given time each.
set -euo pipefail
time=${1:-10s}
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '^func Fuzz' internal | while read -r file; do
  dir=./$(dirname "$file")
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
    echo "fuzz $dir $target"
    # Inputs of targets with goroutines cover a little else each time: making
    # them smaller would take all the time.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "$dir" </dev/null | grep -v '^fuzz: elapsed' || exit 1
  done
done
