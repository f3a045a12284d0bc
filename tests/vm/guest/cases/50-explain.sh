# Every fault that slabbug can plant is recovered from the kernel's own log:
# the cache, the class, and which bytes.
# boots: plain debug
load_slabbug

# found CACHE: the first report about a cache, a line of JSON.
found() { grep -F "\"cache\":\"$1\"" reports | head -n 1; }

# damage CACHE PART OFFSET LENGTH BYTES
damage() {
    line=$(found "$1")
    object=$(echo "$line" | sed 's/.*"object":{//')
    is "$1: where, from, how long, what" \
        "$(for key in part offset_in_object bytes_len found; do echo "$object" | json $key; done | tr '\n' ';')" "$2;$3;$4;$5;"
    is "$1: the object's size" "$(echo "$object" | json size)" 64
    is "$1: who allocated it" "$(echo "$line" | sed 's/.*"allocated"://' | json by | cut -d+ -f1)" slabbug_alloc_one
}

# class CACHE CLASS
class() { is "$1: class" "$(found "$1" | json class)" "$2"; }

for fault in overflow underflow uaf-first uaf-mid bit-flip freeptr; do
    if ! plant "v-$fault" "alloc 3" $fault; then
        echo "skip $case_name: this slabbug.ko does not know $fault" | tee -a /out/results
        continue
    fi
    echo 1 >"$slab/v-$fault/validate"
done
plant f-overflow "overflow!"
plant f-underflow "underflow!"
# With other objects in the slab the kernel sees an object that is free
# already; alone in it, a slab with less than is to be freed.
plant f-double-free "alloc 3" double-free
plant f-double-alone double-free
plant f-bad-free bad-free
plant f-wrong-cache wrong-cache
plant f-leak leak
rmmod slabbug
slabctl explain -o jsonl >reports && code=0 || code=$?
is "status with findings" $code 3
slabctl explain >page || :
cut -c1-200 page

class v-overflow overflow
damage v-overflow "right red zone" 64 2 "12 34"
class v-underflow underflow
damage v-underflow "left red zone" -1 1 56
class v-uaf-first use-after-free
damage v-uaf-first poison 0 1 78
class v-uaf-mid use-after-free
damage v-uaf-mid poison 37 1 9a
if grep -q v-bit-flip reports; then
    class v-bit-flip bit-flip
    damage v-bit-flip poison 37 1 7b
fi
class v-freeptr freelist
class f-overflow overflow
damage f-overflow "right red zone" 64 2 "12 34"
class f-underflow underflow
damage f-underflow "left red zone" -1 1 56
class f-double-free double-free
is "f-double-free: both frees" "$(found f-double-free | json headline | grep -c 'both times by slabbug_free_one')" 1
class f-double-alone double-free
class f-bad-free invalid-free
class f-wrong-cache wrong-cache
is "f-wrong-cache: whose it is" "$(found f-wrong-cache | json headline | grep -c kmalloc)" 1
class f-leak leak
is "f-leak: who left it" "$(found f-leak | sed 's/.*"left":\[//' | json by | cut -d+ -f1)" slabbug_alloc_one

# One cause a fault: whatever else the kernel said is told as what followed.
grep -F '"consequence_of":null' reports | grep -v '"class":"leak"' >causes
is "a cause for each fault, and no other" \
    "$(sed 's/.*"cache":"\([^"]*\)".*/\1/' causes | sort | uniq -c | awk '$1 != 1 { print }')" ""
# Before them in the log is the false alarm of 45-healthy.
is "causes are of planted caches" "$(grep -cvE '"cache":"([vf]-|kmem_cache_node")' causes)" 0
