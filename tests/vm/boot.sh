#!/usr/bin/env bash
# Boots a kernel in qemu, runs a job in it and brings back what it wrote.
#
#   tests/vm/boot.sh BZIMAGE JOB OUT [KERNEL ARGUMENT..]
#
# JOB is a directory; it is /job in the machine, and /job/run is run with sh.
# What that leaves in /out comes back in OUT, with its stdout, stderr and
# status, the kernel's log (dmesg) and all of the console. CPUS (4), NODES (2),
# MEMORY (768, in MB), ACCELERATOR (qemu's -accel) and TIMEOUT (600, in seconds)
# change the machine.
#
# Exit status: 0 when the job came to its end, whatever its status; 124 when it
# did not in time; 125 when the machine died; 77 when a program is missing.
#
# No network, disk or kernel module is needed, so any kernel will do. Files go
# in as a second archive behind the initramfs and out over a serial port.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/common.sh
. "$here/common.sh"
[ $# -ge 3 ] || { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
kernel=$1 job=$2 out=$3
shift 3
need qemu-system-x86_64:qemu-system-x86 cpio:cpio gzip:gzip
cpus=${CPUS:-4} nodes=${NODES:-2} memory=${MEMORY:-768}

# /dev/kvm alone does not tell: under some hypervisors it is there and cannot
# run a usual kernel.
accelerator=${ACCELERATOR:-tcg,thread=multi} cpu=max,la57=off
if [ -z "${ACCELERATOR:-}" ] && [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
    accelerator=kvm cpu=host
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/files/job" "$out"
cp -R "$job/." "$tmp/files/job/"
echo "$accelerator" >"$tmp/files/job/accelerator"
"$here/initramfs.sh" "$tmp/initrd"
(cd "$tmp/files" && find . | cpio -o -H newc --quiet) >"$tmp/job.cpio"
# A second archive has to begin at a multiple of four.
truncate -s %4 "$tmp/initrd"
cat "$tmp/job.cpio" >>"$tmp/initrd"

# A socket for each node, or the kernel warns about the topology.
machine=(-accel "$accelerator" -cpu "$cpu" -m "$memory"
    -smp "$cpus,sockets=$nodes,cores=$((cpus / nodes)),threads=1")
for ((node = 0; node < nodes; node++)); do
    first=$((node * cpus / nodes)) last=$(((node + 1) * cpus / nodes - 1))
    machine+=(-object "memory-backend-ram,id=ram$node,size=$((memory / nodes))M"
        -numa "node,nodeid=$node,memdev=ram$node,cpus=$first-$last")
done

# The check of the timer gives up, and the boot with it, when the host is busy.
status=0
timeout -k 5 "${TIMEOUT:-600}" qemu-system-x86_64 "${machine[@]}" -kernel "$kernel" -initrd "$tmp/initrd" \
    -nodefaults -display none -no-reboot -serial stdio -serial "file:$tmp/out.tgz" \
    -append "console=ttyS0 panic=-1 quiet no_timer_check log_buf_len=4M $*" </dev/null >"$out/console" 2>&1 || status=$?
case $status in
124 | 137) say "no answer in ${TIMEOUT:-600} s: $out/console"; exit 124 ;;
esac
if ! tar -xzf "$tmp/out.tgz" -C "$out" 2>/dev/null || [ ! -e "$out/status" ]; then
    say "the machine died: $out/console"
    tail -n 5 "$out/console" >&2
    exit 125
fi
