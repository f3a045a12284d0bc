# What the cases share. A case goes on after a check that fails; anything else
# that fails ends it, and is a failure of its own.

slab=/sys/kernel/slab
bug=/sys/kernel/debug/slabbug

ok() { echo "ok $case_name: $*" | tee -a /out/results; }
not_ok() { echo "not ok $case_name: $*" | tee -a /out/results; }

# skip REASON: ends the case.
skip() {
    echo "skip $case_name: $*" | tee -a /out/results
    exit 0
}

# is WHAT GOT WANTED
is() {
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1: got [$2], not [$3]"; fi
}

# holds WHAT TEST..: arguments of test(1).
holds() {
    what=$1
    shift
    if [ "$@" ]; then ok "$what"; else not_ok "$what: not [$*]"; fi
}

# has WHAT FILE TEXT: the text is in the file.
has() {
    if grep -qF -e "$3" "$2"; then ok "$1"; else not_ok "$1: no [$3]"; fi
}

# same WHAT FILE FILE
same() {
    if cmp -s "$2" "$3"; then
        ok "$1"
    else
        not_ok "$1"
        diff "$2" "$3" | head -n 20
    fi
}

# status WANTED COMMAND..: it ends with this status.
status() {
    wanted=$1 got=0
    shift
    "$@" || got=$?
    is "status of $*" $got "$wanted"
}

# json KEY <TEXT: the first value of a key in a text of JSON, without quotes.
json() { grep -o '"'"$1"'": *\("[^"]*"\|[^],}]*\)' | head -n 1 | sed 's/^"[^"]*": *//;s/"//g'; }

# load_slabbug [PARAMETER..]
load_slabbug() {
    [ -e /job/slabbug.ko ] || skip "no slabbug.ko for this kernel"
    insmod /job/slabbug.ko "$@"
}

# plant CACHE COMMAND..: commands of slabbug in a fresh cache.
plant() {
    cache=$1
    shift
    echo "new $cache" >$bug
    for command in "$@"; do echo "$command" >$bug; done
}

# csv COMMAND..: slabctl's CSV, with plain line ends.
csv() {
    slabctl -q "$@" --csv >.csv || return
    tr -d '\r' <.csv
}

# counted CACHE OPTION: what happened to it while the file load was run by a
# shell, counted as the option of stat says. Its line is in the file stat, what
# was said in said.
counted() {
    slabctl stat "$2" --csv --all --write stat.$$ -- sh load 2>said || cat said
    grep paths said
    tr -d '\r' <stat.$$ | grep -e ^name, -e "^$1," >stat || true
    rm stat.$$
    cat stat
}

# figure NAME: of that line.
figure() {
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
        NR == 2 && c { print $c }' stat
}

# close WHAT WANTED GOT: two tables by the first column, with objects in the
# second. Running programs moves some objects: up to 64 in each of up to 16
# caches are let pass, and shown.
close() {
    if awk -F, -v OFS=, '
        NR == FNR { row[$1] = $0; objects[$1] = $2; left++; next }
        { left-- }
        $0 == row[$1] { next }
        {
            print "not the same: " row[$1] " and " $0
            off = $2 - objects[$1]
            $2 = objects[$1]
            if ($0 != row[$1] || off < -64 || off > 64 || ++moved > 16) bad = 1
        }
        END { exit bad || left != 0 }' "$2" "$3"; then
        ok "$1"
    else
        not_ok "$1"
    fi
}

# quiet BEFORE AFTER: names of caches with one line in both copies of
# /proc/slabinfo, and the same.
quiet() {
    awk 'NR == FNR { line[$1] = $0; n[$1]++; next }
        line[$1] == $0 && n[$1] == 1 && FNR > 2 { print $1 }' "$1" "$2"
}
