#!/usr/bin/env bash
# What the release binary needs at run time must be in the image's base: glibc and libgcc, no more.
# (There may be no Docker engine here; the Dockerfile itself is checked by tests/house.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

needed=$(ldd target/release/redrive | awk '{ print $1 }' | sed 's|.*/||' | sort)
echo "$needed"
strangers=$(grep -Ev '^(linux-vdso|libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-[a-z0-9-]+)\.so(\.[0-9]+)?$' <<<"$needed" || true)
if [[ -n "$strangers" ]]; then
    echo "not in the image: $strangers" >&2
    exit 1
fi
