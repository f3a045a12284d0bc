# Sizes, limits and flags are those of /sys/kernel/slab, for every cache.
# boots: plain debug
numbers=
for file in object_size slab_size objs_per_slab order align min_partial cpu_partial \
    remote_node_defrag_ratio sheaf_capacity; do
    ls $slab/*/$file >/dev/null 2>&1 && numbers="$numbers $file"
done
flags="hwcache_align poison reclaim_account red_zone sanity_checks store_user trace destroy_by_rcu"

for dir in "$slab"/*; do
    [ ! -h "$dir" ] || continue
    line=${dir##*/}
    for file in $numbers; do
        read -r value <"$dir/$file"
        line=$line,$value
    done
    for file in $flags; do
        read -r value <"$dir/$file"
        case $value in 1) line=$line,yes ;; *) line=$line,no ;; esac
    done
    echo "$line"
done | sort >wanted
csv report -z --columns "id$(printf ',%s' $numbers $flags)" | tail -n +2 | sort >got
holds "there are caches" "$(wc -l <wanted)" -gt 50
same "attributes of all caches ($(echo $numbers $flags | wc -w))" wanted got
