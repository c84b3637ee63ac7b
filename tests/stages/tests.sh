#!/usr/bin/env bash
# Unit, integration and documentation tests. The corpus, the simulation, the load and the house have
# stages of their own: the first three need an optimised build, the last comes first because it is quick.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

targets=(--lib --bins)
for path in tests/*.rs tests/*/main.rs; do
    if [[ ! -f "$path" ]]; then continue; fi
    name=${path#tests/}
    name=${name%.rs}
    name=${name%/main}
    case "$name" in
        corpus | simulation | load | house) ;;
        *) targets+=(--test "$name") ;;
    esac
done

cargo test --locked "${targets[@]}" -- --show-output
cargo test --locked --doc
