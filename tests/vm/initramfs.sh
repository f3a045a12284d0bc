#!/usr/bin/env bash
# Makes the initramfs of the machines: Debian's static busybox and guest/init.
#
#   tests/vm/initramfs.sh FILE
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/common.sh
. "$here/common.sh"
# shellcheck source=tests/vm/debian.sh
. "$here/debian.sh"
need cpio:cpio gzip:gzip
if [ ! -x "$cache/busybox" ]; then
    debian_state bookworm
    debian_fetch "$cache/busybox.d" busybox-static
    mv "$cache/busybox.d/bin/busybox" "$cache/busybox"
    rm -rf "$cache/busybox.d"
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp"/{bin,dev,proc,sys}
cp "$cache/busybox" "$tmp/bin/busybox"
ln -s busybox "$tmp/bin/sh"
cp "$here/guest/init" "$tmp/init"
chmod 755 "$tmp/init"
(cd "$tmp" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1n) >"$1"
