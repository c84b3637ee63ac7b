#!/usr/bin/env bash
# The deterministic simulation, optimised, on every processor. REDRIVE_SEEDS runs more of it
# (docs/testing.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo test --locked --release --test simulation -- --show-output --test-threads=1
