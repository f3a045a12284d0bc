#!/usr/bin/env bash
# Time and peak memory of real programs and of loads/ on the preloaded library and its peers, interleaved:
#   compare.sh [-n ROUNDS] [-o FILE] [WORKLOAD...]
# Needs cc; programs and peers that are not there are left out, and said so. On Debian the peers are
# libmimalloc2.0 and libjemalloc2, the programs git, python3, sqlite3, gcc, redis-server, redis-tools.
# Runs with real-time priority where that is allowed, so that other programs disturb less.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=5 output=
while getopts n:o: option; do
  case $option in
    n) rounds=$OPTARG ;;
    o) output=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml"
cp "$target/release/libslabcore_preload.so" "$work/"

cc -O2 -fno-builtin -pthread -o "$work/loads" "$here/compare/loads.c"
cc -O2 -o "$work/measure" "$here/compare/measure.c"
first=()
if chrt -r 1 true 2>/dev/null; then first=(chrt -r 1); else echo "no real-time priority: expect noise"; fi

names=(glibc slabcore)
declare -A library=([glibc]=- [slabcore]=$work/libslabcore_preload.so)
for peer in mimalloc:libmimalloc.so.2.0 jemalloc:libjemalloc.so.2; do
  if LD_PRELOAD=${peer#*:} sh -c : 2>&1 | grep -q .; then
    echo "SKIPPED: no ${peer%%:*}"
  else
    names+=("${peer%%:*}")
    library[${peer%%:*}]=${peer#*:}
  fi
done

missing() {
  command -v "$1" >/dev/null && return 1
  echo "SKIPPED: no $1" >&2
}

# Each workload: prepare_NAME once, run_NAME LIBRARY prints "seconds processor KiB".
measure() { "${first[@]}" "$work/measure" "$@" 2>>"$work/log"; }

loads=(larson scratch thrash xmalloc mstress simple thread random large grow buffer tree)
for load in "${loads[@]}"; do
  eval "prepare_$load() { :; }; run_$load() { measure \"\$1\" \"$work/loads\" $load; }"
done

cat >"$work/program.py" <<'END'
import json, random, re, zlib
random.seed(5)
words = ["".join(random.choice("abcdefgh") for _ in range(random.randint(3, 12))) for _ in range(60000)]
table = {}
for word in words * 3:
    table.setdefault(word[:3], []).append(word)
text = json.dumps(table, sort_keys=True)
for _ in range(4):
    assert json.loads(text) == table
tree = [(word, [word[i:i + 2] for i in range(len(word))]) for word in words]
tree.sort(key=lambda it: it[0][::-1])
parts = re.sub("[aeiou]+", lambda it: it.group().upper(), text).split("A")
objects = [type("T", (), {})() for _ in range(2000)]
for i, it in enumerate(objects * 20):
    setattr(it, "f%d" % (i % 50), str(i) * 3)
print(len(parts), zlib.crc32(text.encode()))
END
prepare_python() {
  missing python3 && return 1
  python=$(python3 -c 'import sys; print(sys.executable)')
}
run_python() { PYTHONHASHSEED=1 measure "$1" "$python" "$work/program.py"; }
# All of Python's objects from malloc, not from its own allocator.
prepare_python_malloc() { prepare_python; }
run_python_malloc() { PYTHONHASHSEED=1 PYTHONMALLOC=malloc measure "$1" "$python" "$work/program.py"; }

prepare_git() {
  missing git && return 1
  export GIT_CONFIG_NOSYSTEM=1 HOME=$work
  git init -q --bare "$work/repository"
  awk 'BEGIN {
    srand(3); for (i = 0; i < 300; i++) body[i] = ""
    for (n = 1; n <= 5000; n++) {
      f = int(rand() * 300); body[f] = body[f] sprintf("line %d of change %d\n", f, n) substr(body[f], 1, 6000)
      printf "commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 3\nabc\n", 1700000000 + n
      printf "M 100644 inline d%d/f%d\ndata %d\n%s\n", f % 17, f, length(body[f]), body[f]
    } }' | git -C "$work/repository" fast-import --quiet
}
run_git() { measure "$1" sh -c "cd $work/repository && git repack -adfq --threads=2 && git fsck --full --strict"; }

prepare_sqlite() {
  missing sqlite3 && return 1
  cat >"$work/load.sql" <<'END'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
insert into t select i, hex(i * 7919 % 100003) || printf('%.*c', i % 90, 'x'), i / 7.0 from n;
create index tb on t(b); create index tc on t(c, b);
select count(*) from t x join t y on x.a = y.a * 2 where x.b > y.b;
delete from t where a % 3 = 0; update t set b = b || a where a % 5 = 0;
select sum(length(g)) from (select group_concat(b) as g from t group by a % 1000);
pragma integrity_check;
END
}
run_sqlite() { measure "$1" sh -c "sqlite3 :memory: <$work/load.sql >/dev/null"; }

prepare_gcc() {
  missing gcc && return 1
  awk 'BEGIN {
    print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
    for (n = 0; n < 250; n++) {
      printf "struct s%d { int a, b[%d]; char *c; };\n", n, n % 7 + 1
      printf "int f%d(struct s%d *s, int n) { int sum = 0; for (int i = 0; i < n; i++) { switch (i %% 5) {", n, n
      for (k = 0; k < 5; k++) printf " case %d: sum += s->b[i %% %d] * %d + (s->c ? s->c[i] : n); break;", k, n % 7 + 1, n + k
      printf " } if (sum > %d) sum ^= s->a; } return sum; }\n", n * 100
    } }' >"$work/program.c"
}
run_gcc() { measure "$1" gcc -O2 -c -o /dev/null "$work/program.c"; }

prepare_redis() {
  missing redis-server && return 1
  missing redis-benchmark && return 1
  return 0
}
# The server has the library, the client has not; the server's processor time counts.
run_redis() {
  local socket=$work/redis.$RANDOM server tries=0
  "${first[@]}" "$work/measure" "$1" redis-server --port 0 --unixsocket "$socket" --save "" --appendonly no \
    --daemonize no --logfile /dev/null >"$work/server" 2>>"$work/log" &
  server=$!
  until redis-cli -s "$socket" ping >/dev/null 2>&1; do
    if [ $((tries += 1)) -gt 200 ]; then return 1; fi
    sleep 0.05
  done
  redis-benchmark -s "$socket" -q -n 150000 -r 50000 -d 150 -P 16 -c 20 -t set,get,lpush,sadd,hset,zadd,lrange_100 >/dev/null
  redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1 || true
  wait $server || true
  awk '{ print $2, $2, $3 }' "$work/server"
}

workloads=("$@")
[ ${#workloads[@]} -gt 0 ] || workloads=(python python_malloc git sqlite gcc redis "${loads[@]}")
: >"$work/results"
for workload in "${workloads[@]}"; do
  "prepare_$workload" || continue
  for ((round = 0; round < rounds; round++)); do
    for ((i = 0; i < ${#names[@]}; i++)); do
      name=${names[(i + round) % ${#names[@]}]}
      echo "$workload $name $("run_$workload" "${library[$name]}")" >>"$work/results"
    done
  done
done

table() {
  echo "| workload | glibc s | slabcore s | mimalloc s | jemalloc s | to glibc | to best | glibc MiB | slabcore MiB | mimalloc MiB | jemalloc MiB |"
  echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
  awk '
    function median(values,   list, n, i, j, t) {
      n = split(values, list, " ")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
      return n ? list[int((n + 1) / 2)] : ""
    }
    !($1 in seen) { seen[$1] = 1; order[++all] = $1 }
    { time[$1, $2] = time[$1, $2] " " $3; memory[$1, $2] = memory[$1, $2] " " $5 }
    END {
      split("glibc slabcore mimalloc jemalloc", names, " ")
      for (w = 1; w <= all; w++) {
        line = "| " order[w] " |"; best = 1e9
        for (k = 1; k <= 4; k++) {
          t[k] = median(time[order[w], names[k]]); m[k] = median(memory[order[w], names[k]])
          if (t[k] != "" && t[k] + 0 < best) best = t[k] + 0
          line = line (t[k] == "" ? " - |" : sprintf(" %.3f |", t[k]))
        }
        line = line sprintf(" %.2f | %.2f |", t[2] / t[1], t[2] / best)
        for (k = 1; k <= 4; k++) line = line (m[k] == "" ? " - |" : sprintf(" %.1f |", m[k] / 1024))
        print line
      }
    }' "$work/results"
}
table
if [ -n "$output" ]; then table >"$output"; fi
