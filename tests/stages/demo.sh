#!/usr/bin/env bash
# The demo, piped as a pager or a log would have it: it ends by itself, well, and in time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit=30
start=$SECONDS
timeout --kill-after=5 "$limit" target/release/redrive demo </dev/null | tee target/run/demo.out
lines=$(wc -l <target/run/demo.out)
echo "the demo took $((SECONDS - start)) s of $limit and printed $lines lines"
if ((lines < 20)); then
    echo "that is no demo" >&2
    exit 1
fi
if grep -q $'\e' target/run/demo.out; then
    echo "terminal escapes in piped output" >&2
    exit 1
fi
