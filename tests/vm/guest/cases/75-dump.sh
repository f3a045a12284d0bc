# All that the kernel tells of one cache.
# boots: plain debug
load_slabbug
plant dumped "alloc 300 0" "alloc 100 1" "free 50"
slabctl dump dumped --json >dump 2>notes
cat notes

for file in "$slab"/dumped/*; do
    # Some are only written, or not for this cache.
    value=$(cat "$file" 2>/dev/null) || continue
    [ -z "$value" ] || echo "${file##*/} $value"
done >wanted
awk -F'": ' '
    /"attributes": \[/ { on = 1 }
    /"attributes_read"/ { on = 0 }
    on && /"name":/ { name = $2 }
    on && /"value":/ && $2 !~ /^null/ { text = name " " $2; gsub(/[",]/, "", text); print text }' dump |
    grep -v ' $' | sort >got
sort wanted >sorted
holds "there are attributes" "$(wc -l <wanted)" -gt 20
same "all attributes that have a value" sorted got

has "who allocated" dump slabbug_alloc_one
is "how many are left of each" "$(sed -n '/"allocated_by"/,$p' dump | json count)" 350
slabctl dump dumped >page 2>/dev/null
has "a page for people" page "debug options FZPU"
