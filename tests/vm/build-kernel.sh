#!/usr/bin/env bash
# Builds the kernel of config/stats.config from Debian's linux-source-6.12 and
# prints the directory with its bzImage, config and slabbug.ko.
#
# It needs 3 GB below the cache while it works and ten minutes of CPU time (JOBS
# at once, by default as many as CPUs; niced). SLABCTL_VM_STATS_KERNEL names a
# directory with a kernel that was built before; then nothing is built.
# Exit status 77: it cannot be had here, and why.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/common.sh
. "$here/common.sh"
# shellcheck source=tests/vm/debian.sh
. "$here/debian.sh"

if [ -n "${SLABCTL_VM_STATS_KERNEL:-}" ]; then
    [ -r "$SLABCTL_VM_STATS_KERNEL/bzImage" ] || skip "no bzImage in $SLABCTL_VM_STATS_KERNEL"
    echo "$SLABCTL_VM_STATS_KERNEL"
    exit
fi
debian_state bookworm
source=linux-source-6.12
version=$(apt-cache policy $source | awk '/Candidate:/ { print $2 }')
[ -n "$version" ] || skip "Debian bookworm has no $source"
# Another configuration or module is another kernel.
key=$(cat "$here"/config/stats.config "$here"/slabbug/{slabbug.c,Makefile} | sha256sum | cut -c1-8)
dir=$cache/kernels/stats-$version-$key
if [ -e "$dir/done" ]; then
    echo "$dir"
    exit
fi
free=$(df --output=avail -k "$cache" | tail -n 1)
[ "$free" -gt 3500000 ] || skip "building the stats kernel needs 3.5 GB below $cache; $((free / 1000)) MB are free"

say "fetching Debian's $source and a compiler"
work=$(mktemp -d -p "$cache")
trap 'rm -rf "$work"' EXIT
debian_root "$work" "$source" make bc bison cpio diffutils flex gcc gzip kmod libc6-dev libelf-dev libssl-dev perl xz-utils zlib1g-dev
mkdir "$work/build"
tar -xf "$work/usr/src/$source.tar.xz" -C "$work/build"
cp -r "$here"/config/stats.config "$here/slabbug" "$work/build/"

say "building it"
# An option that did not stick would make a test pass for the wrong reason.
cat >"$work/build/run" <<SH
set -e
cd /build/$source
make -s tinyconfig
scripts/kconfig/merge_config.sh -m .config ../stats.config >/dev/null
make -s olddefconfig
grep -E '^(CONFIG_|# CONFIG_.* is not set)' ../stats.config | while read -r option; do
    grep -qxF "\$option" .config || { echo "not taken: \$option" >&2; exit 1; }
done
make -s -j${JOBS:-$(nproc)} KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=slabctl KBUILD_BUILD_HOST=vm bzImage modules
make -s M=/build/slabbug modules
strip -g /build/slabbug/slabbug.ko
SH
started=$SECONDS
if ! in_root "$work" "nice -n 5 sh /build/run" >"$work/log" 2>&1; then
    cp "$work/log" "$cache/stats-kernel.log" || true
    tail -n 20 "$work/log" >&2
    skip "the stats kernel does not build: $cache/stats-kernel.log"
fi
say "built in $((SECONDS - started)) s"
rm -rf "$dir" && mkdir -p "$dir"
cp "$work/build/$source/arch/x86/boot/bzImage" "$work/build/slabbug/slabbug.ko" "$dir/"
cp "$work/build/$source/.config" "$dir/config"
touch "$dir/done"
echo "$dir"
