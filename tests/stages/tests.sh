#!/usr/bin/env bash
# Unit, integration and documentation tests. The corpus and the house have stages of their own: one
# needs an optimised build, the other comes first because it is quick.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

targets=(--lib --bins)
for path in tests/*.rs tests/*/main.rs; do
    if [[ ! -f "$path" ]]; then continue; fi
    name=${path#tests/}
    name=${name%.rs}
    name=${name%/main}
    case "$name" in
        corpus | house) ;;
        *) targets+=(--test "$name") ;;
    esac
done

cargo test --locked "${targets[@]}" -- --show-output
cargo test --locked --doc
