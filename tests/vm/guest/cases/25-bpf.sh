# What BPF programs see is what the files say, for caches that did not change
# meanwhile: with the parked objects added, figures and lists are the same. The
# files are read by slabctl too, since a program that runs holds objects; other
# cases hold those reports to the files.
# boots: plain debug
slabctl doctor --csv | tr -d '\r' >doctor || true
if ! grep -q '^BPF programs,readable' doctor; then
    why=$(sed -n 's/^BPF programs,//p' doctor)
    # A kernel that describes its types has to take them.
    [ -e /sys/kernel/btf/vmlinux ] || skip "no BPF here: $why"
    not_ok "the kernel takes the programs: $why"
    exit 0
fi

# three COLUMNS..: files before, programs with the parked objects, files after.
three() {
    csv report -z --exact --columns "$1" | tail -n +2 | sort >before
    csv report --bpf -z --columns "$1,parked" | tail -n +2 | sort >seen
    csv report -z --exact --columns "$1" | tail -n +2 | sort >after
    grep -xFf after before >still
}

# near WHAT BOUND..: four of five caches in `still` have the same line in `got`.
# The programs themselves are objects of some, so the others may be off, by as
# much as the bound of the column.
near() {
    what=$1
    shift
    if awk -F, -v bounds="$*" '
        BEGIN { split(bounds, bound, " ") }
        NR == FNR { still[$1] = $0; all++; next }
        !($1 in still) || still[$1] == $0 { same += $1 in still; next }
        {
            print "not the same: " still[$1] " and " $0
            split(still[$1], old, ",")
            for (i = 2; i <= NF; i++) {
                off = $i - old[i]
                if (off < -bound[i - 1] || off > bound[i - 1]) bad = 1
            }
        }
        END { exit bad || same * 5 < all * 4 }' still got; then
        ok "$what"
    else
        not_ok "$what"
    fi
}

three id,objects,total_objects,slab_size,objs_per_slab,slabs,pages_per_slab
is "every cache is there" "$(wc -l <seen)" "$(wc -l <after)"
is "the programs counted what is parked" "$(grep -c ',$' seen)" 0
holds "at least 50 caches were quiet" "$(wc -l <still)" -ge 50
awk -F, -v OFS=, '{ print $1, $2 + $8, $3, $4, $5, $6, $7 }' seen >got
near "figures of quiet caches are those of the files" 64 256 0 0 16 0

three id,objects_partial,partial,cpu_slabs
# Kernels of the sheaves have no CPU slabs; their file says 0.
sed 's/,[0-9]*$//; s/,$/,0/' seen >got
holds "at least 50 caches have quiet lists" "$(wc -l <still)" -ge 50
near "lists of quiet caches are those of sysfs" 128 16 16

# 5000 objects that are in use, and then are not.
in_use() { csv report --bpf -z --columns name,objects "$1" | tail -n +2 | head -n 1 | cut -d, -f2; }
load_slabbug
echo "new counted" >$bug
before=$(in_use counted)
echo "alloc 5000" >$bug
is "objects in use are those that were allocated" $(($(in_use counted) - before)) 5000
echo "free 5000" >$bug
is "and none after they were given back" "$(in_use counted)" "$before"
