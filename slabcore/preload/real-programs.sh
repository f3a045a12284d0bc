#!/usr/bin/env bash
# Real programs run their own tests on the preloaded library, with every policy and with everything debugged:
#   real-programs.sh [-q] [PROGRAM...]      -q: only the default policy, plain and debugged
# PROGRAM is one of python, git, sqlite, gcc, redis; what is not installed is skipped, and said so. A program
# must succeed, and the library must report nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
quick=
if [ "${1:-}" = -q ]; then quick=1; shift; fi
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(python git sqlite gcc redis)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml"
library=$target/release/libslabcore_preload.so

have() {
  command -v "$1" >/dev/null && return 0
  echo "SKIPPED: no $1"
  return 1
}

# Runs a command with the library and the choices in "settings"; its output is shown if it fails or something is reported.
with() {
  local log=$work/report status=0
  rm -f "$log"
  env "${settings[@]}" SLABCORE_LOG="$log" LD_PRELOAD="$library" timeout 1200 "$@" >"$work/out" 2>&1 || status=$?
  if [ $status -ne 0 ] || [ -s "$log" ] || grep -q '^slabcore: ' "$work/out"; then
    echo "FAILED ($status): ${settings[*]} $*"
    tail -30 "$work/out"
    [ -s "$log" ] && head -60 "$log"
    exit 1
  fi
}

run_python() {
  have python3 || return 0
  local python
  python=$(python3 -c 'import sys; print(sys.executable)')
  "$python" -c 'import test.test_dict' 2>/dev/null || { echo "SKIPPED: python3 has no tests"; return 0; }
  with "$python" -m test -q test_dict test_list test_json test_thread test_queue test_weakref test_gc
  with env PYTHONMALLOC=malloc "$python" -m test -q test_heapq test_bisect
}

run_git() {
  have git || return 0
  rm -rf "$work/git"
  export GIT_CONFIG_NOSYSTEM=1 HOME=$work
  git init -q "$work/git"
  git -C "$work/git" config user.email a@b
  git -C "$work/git" config user.name a
  for i in 1 2 3 4 5 6 7 8; do
    seq $((i * 1000)) >"$work/git/f$((i % 3))"
    with git -C "$work/git" add .
    with git -C "$work/git" commit -q -m "$i"
  done
  with git -C "$work/git" repack -adfq --threads=2
  with git -C "$work/git" fsck --full --strict
  with git -C "$work/git" gc -q --aggressive
  with git clone -q "$work/git" "$work/git/clone"
}

run_sqlite() {
  have sqlite3 || return 0
  rm -f "$work/db"
  cat >"$work/sql" <<'END'
create table t(a integer primary key, b text); create virtual table f using fts5(b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) || printf('%.*c', i % 300, 'x') from n;
insert into f select b from t; create index tb on t(b); delete from t where a % 3 = 0;
update t set b = b || a where a % 5 = 0; vacuum; reindex; analyze;
select json_group_array(b) from (select b from t limit 2000); pragma integrity_check; pragma quick_check;
END
  with sh -c "sqlite3 $work/db <$work/sql | tail -1 | grep -qx ok"
}

run_gcc() {
  have gcc || return 0
  with gcc -O2 -Wall -Wno-unused-result -pthread -o "$work/loads" "$here/compare/loads.c"
  with "$work/loads" mstress
}

run_redis() {
  have redis-server && have redis-benchmark || return 0
  local socket=$work/redis
  with sh -c "
    redis-server --port 0 --unixsocket $socket --save '' --appendonly no --dir $work --enable-debug-command local \
      --activedefrag no >/dev/null & server=\$!
    until redis-cli -s $socket ping; do sleep 0.05; done
    redis-benchmark -s $socket -q -n 5000 -r 3000 -d 200 -P 8 -c 10 \
      -t set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,mset,lrange_100
    redis-cli -s $socket debug reload && redis-cli -s $socket bgsave && redis-cli -s $socket flushall
    redis-cli -s $socket shutdown nosave; wait \$server"
}

choices=("SLABCORE_POLICY=hybrid" "SLABCORE_DEBUG=FZPU")
if [ -z "$quick" ]; then
  for policy in classic cpu-partial delayed-freeze sheaves; do
    choices+=("SLABCORE_POLICY=$policy" "SLABCORE_POLICY=$policy SLABCORE_DEBUG=FZPU")
  done
  choices+=("SLABCORE_SAMPLE=500" "SLABCORE_HARDEN=1 SLABCORE_RANDOMISE=1")
fi
for choice in "${choices[@]}"; do
  read -ra settings <<<"$choice"
  for program in "${programs[@]}"; do
    begun=$SECONDS
    "run_$program"
    echo "$program, $choice: fine ($((SECONDS - begun)) s)"
  done
done
