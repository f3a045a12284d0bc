#!/usr/bin/env bash
# What BPF programs cost the loads that run under them.
#
#   docs/benchmarks/bpf.sh [SLABCTL [ROUNDS]]
#
# Each round runs a load bare, while allocations are counted alone, while their
# paths are inferred, and while the objects of filp are followed, all or one in
# 16, one after the other. LOADS and MODES choose some of them. What counts is the
# processor time of the load and its children (getrusage), which the programs'
# time is part of. Medians, and their ratio to the bare load. Needs root, gcc and
# perf; the load runs at a real-time priority, so that others are not in it.
set -euo pipefail
slabctl=${1:-target/release/slabctl}
rounds=${2:-7}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Runs a command and writes the microseconds of processor time that it took.
cat >"$tmp/cpu.c" <<'C'
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct rusage used;
	int status = 0;
	if (argc < 3)
		return 2;
	if (fork() == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	wait(&status);
	getrusage(RUSAGE_CHILDREN, &used);
	FILE *out = fopen(argv[1], "w");
	if (!out)
		return 2;
	fprintf(out, "%ld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L +
		used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	return fclose(out) || status != 0;
}
C
cat >"$tmp/opens.c" <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (long n = argc > 1 ? atol(argv[1]) : 1; n > 0; n--)
		close(open("/dev/null", O_RDONLY));
	return 0;
}
C
gcc -O2 -o "$tmp/cpu" "$tmp/cpu.c"
gcc -O2 -o "$tmp/opens" "$tmp/opens.c"
# Something to compile: many functions, no headers.
for n in $(seq 1000); do
    echo "int f$n(int *a, int n) { int s = $n; for (int i = 0; i < n; i++) s += a[i] * $n ^ s; return s; }"
done >"$tmp/much.c"

load() {
    case $1 in
    opens) echo "$tmp/opens 400000" ;;
    messaging) echo "perf bench sched messaging -g 4 -l 400" ;;
    find) echo "find /usr/share /usr/lib -printf %s" ;;
    compile) echo "gcc -O2 -c -o $tmp/much.o $tmp/much.c" ;;
    esac
}

# once MODE LOAD: one number.
once() {
    local command=(chrt -r 1 "$tmp/cpu" "$tmp/time")
    read -ra words <<<"$(load "$2")"
    command+=("${words[@]}")
    case $1 in
    bare) "${command[@]}" ;;
    counts | inferred) "$slabctl" stat -q --paths="$1" -- "${command[@]}" ;;
    live | sampled)
        local every=1
        [ "$1" = live ] || every=16
        "$slabctl" sites filp --live --for 1h --sample $every -q &
        local follower=$!
        sleep 2
        "${command[@]}" >/dev/null
        kill -INT "$follower"
        wait "$follower" || true
        ;;
    esac >/dev/null 2>"$tmp/said" || { cat "$tmp/said" >&2; exit 1; }
    cat "$tmp/time"
}

median() { sort -n "$1" | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

read -ra modes <<<"bare ${MODES:-counts inferred live sampled}"
printf '%-10s %10s' load bare_ms
printf ' %8s' "${modes[@]:1}"
echo
for load in ${LOADS:-opens messaging find compile}; do
    once bare "$load" >/dev/null
    for _ in $(seq "$rounds"); do
        for mode in "${modes[@]}"; do
            once "$mode" "$load" >>"$tmp/$load.$mode"
        done
    done
    for mode in "${modes[@]}"; do median "$tmp/$load.$mode"; done | paste -s | awk -v n="$load" \
        '{ printf "%-10s %10.0f", n, $1 / 1000; for (i = 2; i <= NF; i++) printf " %8.2f", $i / $1; print "" }'
done
