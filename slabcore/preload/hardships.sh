#!/usr/bin/env bash
# The long version of the tests `hardships` and `programs`, in release mode and with a segment:
#   hardships.sh [MINUTES]      default: 5
# Storms of forks, a thousand threads at a time, chains of exec, daemons, closed files, filters, tiny limits, in turn
# with every policy and with debugging. As root also chroot and dropped rights. Any failure ends it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
minutes=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml"
cp "$target/release/libslabcore_preload.so" "$work/"
for program in hardships threads exec forks; do
  cc -O1 -g -w -fno-builtin -pthread -rdynamic -o "$work/$program" "$here/tests/c/$program.c"
done
mkdir "$work/empty"

rounds=0 runs=0
one() {
  local status=0 told
  # Through a pipe: no file may be written in one of them.
  told=$(env "${settings[@]}" LD_PRELOAD="$work/libslabcore_preload.so" timeout 600 "$work/$1" "${@:2}" 2>&1) || status=$?
  runs=$((runs + 1))
  if [ $status -ne 0 ] || [ "$told" != 'all right' ]; then
    echo "FAILED ($status): ${settings[*]} $*"
    head -60 <<<"$told"
    exit 1
  fi
}

all() {
  one hardships storm "$1"
  one threads "$2" "$2"
  one exec "$3"
  one forks "$4"
  for what in closes daemon files length memory sandbox sandboxed-start segments; do
    one hardships "$what"
  done
  if [ "$(id -u)" = 0 ]; then
    one hardships chroot "$work/empty"
    one hardships drops
  fi
}

while [ $rounds -eq 0 ] || [ $SECONDS -lt $((minutes * 60)) ]; do
  for policy in classic cpu-partial delayed-freeze sheaves hybrid; do
    settings=("SLABCORE_POLICY=$policy")
    all 2000 1000 100 40
  done
  settings=("SLABCORE_SEGMENT=file:$(mktemp -u /dev/shm/slabcore-hardships-XXXXXX)")
  all 2000 1000 100 40
  rm -f "${settings[0]#*file:}"
  settings=(SLABCORE_DEBUG=FZPU)
  all 60 100 20 4
  rounds=$((rounds + 1))
  echo "$rounds rounds, $runs runs: fine ($SECONDS s)"
done
