#!/usr/bin/env bash
# Lays out the root of the image: the release binary and the shared libraries that it names, for an
# image `FROM scratch`. No shell, no package manager, nothing else that could be old.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

binary=target/release/redrive
root=target/image
rm -rf "$root"
install -D -m 0755 "$binary" "$root/usr/local/bin/redrive"
# glibc finds names by itself (its dns and files services are built in); the loader comes with the list.
ldd "$binary" | grep -oE '/[^ ]+' | sort -u | while read -r library; do
    install -D -m 0755 "$library" "$root$library"
done
mkdir -p "$root/etc"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo 'redrive:x:65532:65532::/:/sbin/nologin' >"$root/etc/passwd"
echo 'redrive:x:65532:' >"$root/etc/group"
