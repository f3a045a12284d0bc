# The kernel's own check of damaged caches, and its verdict from the log.
# boots: plain debug
load_slabbug

# finding <DOCUMENT: the first finding in it.
finding() {
    awk '/"findings": \[/ { list = 1; next } list && /\{/ { inside = 1 } inside { print } inside && /\}/ { exit }'
}

# verdict CACHE FAULT CODE OFFSET: plants a fault and has the cache checked.
# OFFSET is from the object's start; where the object is, tells slabctl explain.
verdict() {
    plant "$1" "alloc 3" "$2"
    code=0
    slabctl validate "$1" --yes --json >verdict 2>notes || code=$?
    finding <verdict >found
    is "$1: status" $code 3
    is "$1: cache" "$(json cache <found)" "$1"
    is "$1: code" "$(json code <found)" "$3"
    is "$1: found by the check" "$(json found_by_check <found)" true
    if [ -n "$4" ]; then
        slabctl explain -o jsonl 2>/dev/null | grep -F "\"cache\":\"$1\"" | head -n 1 | sed 's/.*"object":{//' >object
        at=$(json offset_in_slab <object)
        is "$1: offset in the slab" "$(json offset_in_slab <found)" $((at + $4))
    fi
    # What it was repaired to is whole, but for a list of free objects.
    code=0
    slabctl validate "$1" --yes >again 2>&1 || code=$?
    cat again
    [ "$3" = freelist ] || is "$1: after the repair" $code 0
}

verdict w-overflow overflow overflow 64
verdict w-underflow underflow underflow -1
verdict w-uaf-first uaf-first use-after-free 0
verdict w-uaf-mid uaf-mid use-after-free 37
verdict w-freeptr freeptr freelist ""

# A healthy cache, empty and with objects.
plant w-healthy "alloc 500" "free 100"
code=0
slabctl validate w-healthy --yes >page 2>&1 || code=$?
cat page
is "a healthy cache: status" $code 0
has "a healthy cache: says so" page "no findings"
