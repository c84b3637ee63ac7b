#!/usr/bin/env bash
# Runs the sidecar in the image's root, as its user and with nothing else of this machine. (There may be
# no Docker engine here; the Dockerfile itself is checked by tests/house.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

root=target/image
inside() {
    if ((EUID == 0)); then
        chroot --userspec=65532:65532 "$root" "$@"
    else
        unshare --map-root-user chroot "$root" "$@"
    fi
}
find "$root" -type f | sort
inside /usr/local/bin/redrive --version
inside /usr/local/bin/redrive demo --fast | tail -n 3
