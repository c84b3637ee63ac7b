#!/usr/bin/env bash
# Lints the contract: buf's STANDARD rules, and a comment on every message, field, value and rpc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/stages/python.sh

buf="$(dirname "$PYTHON")/buf"
"$buf" lint proto
files=(proto/redrive/v1/*.proto)
echo "proto: ${#files[@]} files clean under buf $("$buf" --version) STANDARD and COMMENTS"
