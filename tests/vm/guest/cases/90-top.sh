# The live screen as lines, while a cache grows.
# boots: plain debug
load_slabbug
plant topped "alloc 100"
slabctl top --linear --count 4 --interval 1s topped >lines &
until grep -q 'topped holds' lines 2>/dev/null; do sleep 0.2; done
echo "alloc 5000" >$bug
wait $!
cat lines
has "what is there at first" lines "topped holds"
grown=$(sed -n 's/.*topped +.*, +\([0-9]*\) objects.*/\1/p' lines | awk '{ s += $1 } END { print s + 0 }')
is "the growth" "$grown" 5000
