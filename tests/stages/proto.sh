#!/usr/bin/env bash
# Lints the contract: buf's STANDARD rules, and a comment on every message, field, value and rpc.
# buf comes from its PyPI wheel into the target folder, once.
set -euo pipefail

version=1.75.0
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
venv="${CARGO_TARGET_DIR:-target}/buf-$version"

if [[ "$("$venv/bin/buf" --version 2>/dev/null)" != "$version" ]]; then
    mkdir -p "$(dirname "$venv")"
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "buf-bin==$version"
fi

"$venv/bin/buf" lint proto
files=(proto/redrive/v1/*.proto)
echo "proto: ${#files[@]} files clean under buf $version STANDARD and COMMENTS"
