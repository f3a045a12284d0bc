# The kernel's own check of all its caches, before any is damaged.
# boots: plain debug
code=0
slabctl validate --all --yes --json >all 2>notes || code=$?
if [ "$(cat /job/boot)" = debug ]; then
    # A false alarm of 7.x kernels: the objects of kmem_cache_node that the boot
    # makes, one a node, never get a link, and validation looks at it.
    awk '/"findings": \[/ { list = 1 } /"more_findings"/ { list = 0 } list && /"(cache|reason)":/ { print $2 }' all |
        paste - - >findings
    cat findings
    is "all caches: nothing but the alarm of kmem_cache_node" "$(grep -vc '"kmem_cache_node",."Freepointer' findings)" 0
    if [ "$(json clean <all)" = true ]; then wanted=0; else wanted=3; fi
    is "all caches: status" $code $wanted
    is "all caches: none is not known" "$(grep -c '"verdict": "unknown"' all)" 0
    checked=$(json caches <all)
    debugged=0
    for dir in "$slab"/*; do
        [ ! -h "$dir" ] || continue
        read -r flag <"$dir/sanity_checks"
        debugged=$((debugged + flag))
    done
    is "all caches with debug options were checked" "$checked" $debugged
else
    is "no cache can be checked: status" $code 69
    code=0
    slabctl validate kmalloc-64 --yes 2>why || code=$?
    cat why
    is "a cache without debug options: status" $code 69
    has "it says what to boot with" why _debug=
fi
