#!/usr/bin/env bash
# The release build, and the image's root. The Dockerfile runs this very script, so an image holds what
# the tests built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo build --locked --release --bin redrive
tests/stages/image_root.sh
