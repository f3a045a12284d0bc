#!/usr/bin/env bash
# Makes a kernel ready for run.sh, from Debian's packages alone, and prints the
# directory with its bzImage, config and slabbug.ko.
#
#   tests/vm/kernel.sh 6.1|6.12|newest|stats
#
# 6.1, 6.12   Debian's newest cloud kernel of the series, from bookworm
# newest      the newest of trixie and its backports
# stats       Debian's source of 6.12 with config/stats.config: CONFIG_SLUB_STATS
#
# Packages are downloaded and unpacked, never installed. slabbug.ko and the
# stats kernel are built in an unpacked Debian with the compiler that Debian
# built that kernel with. Exit status 77: it cannot be had here, and why.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/common.sh
. "$here/common.sh"
# shellcheck source=tests/vm/debian.sh
. "$here/debian.sh"
need apt-get:apt dpkg-deb:dpkg unshare:util-linux chroot:coreutils

# build_slabbug ROOT KDIR OUT: builds the module in a root, against a kernel's tree there.
build_slabbug() {
    cp -r "$here/slabbug" "$1/slabbug"
    if in_root "$1" "make -s -C '$2' M=/slabbug modules && strip -g /slabbug/slabbug.ko" >"$1/slabbug.log" 2>&1; then
        cp "$1/slabbug/slabbug.ko" "$3/slabbug.ko"
    else
        tail -n 20 "$1/slabbug.log" >&2
        skip "slabbug does not build for $(basename "$3")"
    fi
}

debian_kernel() {
    local series=$1 release=$2 headers version dir image
    debian_state "$release"
    headers=$(debian_newest "linux-headers-$series.*-cloud-amd64")
    [ -n "$headers" ] || skip "Debian $release has no cloud kernel $series"
    version=${headers#linux-headers-}
    dir=$cache/kernels/deb-$version
    if [ ! -e "$dir/done" ]; then
        say "fetching Debian's $version and its compiler"
        rm -rf "$dir" && mkdir -p "$dir"
        work=$(mktemp -d -p "$cache")
        trap 'rm -rf "$work"' EXIT
        # From 7.0 on the image is in a package of its own.
        image=$(debian_newest "linux-binary-${version//+/[+]}")
        debian_fetch "$work/image" "${image:-linux-image-$version}"
        cp "$(find "$work/image" -name 'vmlinuz*' -type f)" "$dir/bzImage"
        debian_root "$work/root" "$headers" make
        cp "$(find "$work/root/boot" "$work/image" "$work/root/usr/src" -name "config-$version" -o \
            -path "*/$headers/.config" 2>/dev/null | head -n 1)" "$dir/config" || say "no config of $version"
        build_slabbug "$work/root" "/usr/src/$headers" "$dir"
        touch "$dir/done"
    fi
    echo "$dir"
}

case ${1:-} in
6.1) debian_kernel '6\.1\.[0-9]' bookworm ;;
6.12) debian_kernel '6\.12\.[0-9]' bookworm ;;
newest) debian_kernel '[0-9]+\.[0-9]+\.[0-9]' trixie ;;
stats) "$here/build-kernel.sh" ;;
*) sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
