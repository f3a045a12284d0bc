#!/usr/bin/env bash
# Builds the BPF objects that the program carries.
#
#   collectors/bpf/build.sh           builds them anew, in place
#   collectors/bpf/build.sh --check   builds them elsewhere and compares
#
# The compiler is pinned, so that anybody can make the same bytes: clang 19.1.7
# of Debian 12 or 13 (package clang-19). CLANG and LLVM_STRIP name others, which
# must be of that version. Exit status: 0 done or the same, 1 another object,
# 77 no such compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
version=19.1.7
clang=${CLANG:-clang-19}
strip=${LLVM_STRIP:-llvm-strip-19}

for tool in "$clang" "$strip"; do
    if ! command -v "$tool" >/dev/null; then
        echo "no $tool: apt-get install clang-19 llvm-19" >&2
        exit 77
    fi
done
if ! "$clang" --version | grep -qF "clang version $version "; then
    echo "$clang is not version $version: $("$clang" --version | sed -n 1p)" >&2
    exit 77
fi

# Debug information is for BTF alone, which holds no paths; -fdebug-prefix-map
# keeps them out of what is stripped too.
flags=(-target bpfel -mcpu=v3 -O2 -g -std=gnu11 -nostdinc -ffile-prefix-map="$PWD"=.
    -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-variable -Wno-unused-function)

compile() {
    local out=$1 source
    for source in *.bpf.c; do
        "$clang" "${flags[@]}" -c "$source" -o "$out/${source%.c}.o"
        "$strip" --strip-debug "$out/${source%.c}.o"
    done
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
case ${1:-} in
"")
    compile "$tmp"
    mv "$tmp"/*.o .
    ;;
--check)
    compile "$tmp"
    status=0
    for object in "$tmp"/*.o; do
        if cmp -s "$object" "$(basename "$object")"; then
            echo "$(basename "$object"): the same"
        else
            echo "$(basename "$object"): not what its source makes; run collectors/bpf/build.sh" >&2
            status=1
        fi
    done
    exit $status
    ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
