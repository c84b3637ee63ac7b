#!/usr/bin/env bash
# Every configuration that we show to others passes `redrive check`: the examples, and the one of the
# README, which is also what the quick start promises.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

redrive=$PWD/target/release/redrive
readme=target/run/readme.yaml
sed -n '/^```yaml$/,/^```$/{/^```/!p}' README.md >"$readme"
[[ -s "$readme" ]] || { echo "the README shows no configuration" >&2; exit 1; }

checked=0
for file in "$readme" examples/*.yaml; do
    case "$file" in *.values.yaml) continue ;; esac
    # A value for each environment variable that the file names; no secret is needed to check.
    variables=$(grep -oE 'env: *[A-Z_]+' "$file" | sed -E 's/env: *(.*)/\1=none/' | sort -u || true)
    # shellcheck disable=SC2086
    (cd "$(dirname "$file")" && env $variables "$redrive" check "$(basename "$file")")
    checked=$((checked + 1))
done
echo "$checked files checked"
