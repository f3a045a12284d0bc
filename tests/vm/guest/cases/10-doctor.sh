# What slabctl says that this machine offers is what it offers.
# boots: plain debug
csv doctor >doctor
cut -d, -f1,2 doctor

state() { awk -F, -v what="$1" '$1 == what { print $2 }' doctor; }

is "the status with everything readable" "$(slabctl doctor >/dev/null && echo 0)" 0
is "sysfs" "$(state /sys/kernel/slab)" readable
is "slabinfo" "$(state /proc/slabinfo)" readable
is "the kernel's log" "$(grep '^"kernel log' doctor | awk -F'",' '{ print $2 }' | cut -d, -f1)" readable
if ls $slab/*/alloc_fastpath >/dev/null 2>&1; then counters=readable; else counters=off; fi
is "event counters" "$(state 'event counters')" $counters
if ls -d /sys/kernel/debug/slab/* >/dev/null 2>&1; then traces=readable; else traces=empty; fi
is "call sites" "$(state /sys/kernel/debug/slab)" $traces
has "the boot options" doctor "$(tr ' ' '\n' </proc/cmdline | grep nomerge)"
