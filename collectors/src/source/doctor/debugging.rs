//! Probes what the kernel was built and booted with: counters, checks, tracking.
//!
//! Source: mm/slub.c, lib/alloc_tag.c, mm/page_owner.c and
//! Documentation/admin-guide/kernel-parameters.txt, Linux 6.18.

use std::io;

use super::machine::{AS_ROOT, Probe};
use super::{Finding, State, state_of};
use crate::source::tree::{EntryKind, Tree as _};

const DEBUG: &str = "sys/kernel/debug";

/// All of them.
pub(super) fn all(probe: &Probe<'_>) -> Vec<Finding> {
    vec![
        boot(probe),
        counters(probe),
        checks(probe),
        tracking(probe),
        kernel_log(probe),
        allocinfo(probe),
        page_owner(probe),
        types(probe),
    ]
}

/// The boot options for debugging and against merging: renamed in Linux 6.9
/// ("mm/slub: rename slub_debug to slab_debug"); the old words still work there.
pub(crate) fn boot_words(kernel: Option<&str>) -> (&'static str, &'static str) {
    let old = kernel.and_then(version).is_some_and(|v| v < (6, 9));
    if old {
        ("slub_debug", "slub_nomerge")
    } else {
        ("slab_debug", "slab_nomerge")
    }
}

/// The first two numbers of a release.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The options of the command line that concern the allocator.
pub(super) fn slab_options(cmdline: &str) -> Vec<&str> {
    cmdline
        .split_whitespace()
        .filter(|word| ["slab_", "slub_"].iter().any(|p| word.starts_with(p)))
        .collect()
}

fn boot(probe: &Probe<'_>) -> Finding {
    let gives = "debugging and merging that was chosen at boot";
    let Some(cmdline) = &probe.system.cmdline else {
        return Finding::new("boot options", State::Missing, gives).remark("no /proc/cmdline");
    };
    let options = slab_options(cmdline);
    let remark = if options.is_empty() {
        "none for slabs".to_owned()
    } else {
        options.join(" ")
    };
    Finding::new("boot options", State::Readable, gives).remark(remark)
}

/// A capability that shows in an attribute file of every cache.
fn by_attribute(probe: &Probe<'_>, what: &str, gives: &str, file: &str, option: &str) -> Finding {
    if !probe.has(file) {
        if probe.attributes.is_empty() {
            let finding = Finding::new(what, State::Missing, gives);
            return finding.remark("no cache in /sys/kernel/slab to look at");
        }
        let built = match probe.option(option) {
            Some("y") => format!("{option}=y, and yet there is no {file}"),
            _ => format!("the kernel is built without {option}: needs another kernel"),
        };
        return Finding::new(what, State::Off, gives).remark(built);
    }
    let finding = Finding::new(what, state_of(&probe.attribute(file)), gives);
    match finding.state {
        State::Denied => finding.remark(AS_ROOT),
        _ => finding.remark(option),
    }
}

fn counters(probe: &Probe<'_>) -> Finding {
    let gives = "allocations and frees by path (report --activity)";
    by_attribute(
        probe,
        "event counters",
        gives,
        "alloc_fastpath",
        "CONFIG_SLUB_STATS",
    )
}

fn checks(probe: &Probe<'_>) -> Finding {
    let gives = "slab and object counts in sysfs; the kernel's own check of a cache";
    let option = "CONFIG_SLUB_DEBUG";
    let finding = by_attribute(probe, "slab debugging", gives, "total_objects", option);
    if finding.state == State::Readable && probe.has("validate") {
        return finding.remark(format!(
            "{option}; `echo 1 > /sys/kernel/slab/NAME/validate` checks a cache, the kernel log has the verdict"
        ));
    }
    finding
}

/// Whether debugfs is mounted, told from there being anything in it.
fn debugfs(probe: &Probe<'_>) -> State {
    match probe.tree.list(DEBUG) {
        Ok(entries) if entries.is_empty() => State::Missing,
        other => state_of(&other),
    }
}

fn tracking(probe: &Probe<'_>) -> Finding {
    let gives = "who allocated and freed the objects (show, report --tracking)";
    let path = "sys/kernel/debug/slab";
    let finding = |state| Finding::new(format!("/{path}"), state, gives);
    let (debug, _) = boot_words(probe.system.kernel.as_deref());
    match (debugfs(probe), probe.tree.list(path)) {
        (State::Denied, _) => finding(State::Denied).remark(AS_ROOT),
        (_, Ok(entries)) => {
            let tracked: Vec<&str> = entries
                .iter()
                .filter(|e| e.kind == EntryKind::Directory)
                .map(|e| e.name.as_str())
                .collect();
            let shown = tracked.iter().take(8).copied().collect::<Vec<_>>();
            match tracked.len() {
                0 => finding(State::Empty).remark(format!(
                    "no cache is tracked: boot with {debug}=U (all caches) or {debug}=U,NAME"
                )),
                n if n > shown.len() => finding(State::Readable)
                    .remark(format!("{n} caches: {}, ...", shown.join(", "))),
                n => finding(State::Readable).remark(format!("{n} caches: {}", shown.join(", "))),
            }
        }
        (_, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            finding(State::Denied).remark(AS_ROOT)
        }
        _ if probe.option("CONFIG_SLAB") == Some("y") => {
            finding(State::Off).remark("the SLAB allocator does not offer it")
        }
        (State::Missing, _) => finding(State::Missing).remark(format!(
            "debugfs is not mounted: mount -t debugfs debugfs /sys/kernel/debug; only caches booted with {debug}=U,NAME are tracked"
        )),
        _ if probe.has("alloc_calls") => finding(State::Readable)
            .remark("before Linux 5.14: alloc_calls and free_calls in /sys/kernel/slab instead"),
        _ => finding(State::Off).remark("the kernel is built without CONFIG_SLUB_DEBUG"),
    }
}

fn kernel_log(probe: &Probe<'_>) -> Finding {
    let gives = "reports of corrupted objects, failed allocations, OOM slab tables";
    // Opening is what is refused (kernel.dmesg_restrict). After that: nothing
    // to read now, a record longer than the buffer, records lost meanwhile.
    let result = probe.peek("dev/kmsg").or_else(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::InvalidInput | io::ErrorKind::BrokenPipe => {
            Ok(Vec::new())
        }
        _ => Err(error),
    });
    let finding = Finding::new("kernel log, /dev/kmsg", state_of(&result), gives);
    match finding.state {
        State::Denied => {
            finding.remark("needs root or CAP_SYSLOG (kernel.dmesg_restrict is 1): sudo dmesg")
        }
        State::Missing => finding.remark("no such device here; try dmesg, or journalctl -k"),
        _ => finding,
    }
}

fn allocinfo(probe: &Probe<'_>) -> Finding {
    let gives = "bytes held by each allocation site of the kernel";
    let finding = |state| Finding::new("/proc/allocinfo", state, gives);
    let option = "CONFIG_MEM_ALLOC_PROFILING";
    let switch = "sys/vm/mem_profiling";
    let on = probe.tree.read_text(&format!("proc/{switch}"));
    match probe.peek("proc/allocinfo") {
        Ok(_) if on.as_deref().is_ok_and(|text| text.trim() == "0") => finding(State::Off)
            .remark("memory allocation profiling is off: boot with sysctl.vm.mem_profiling=1"),
        Ok(head) if head.is_empty() => finding(State::Empty),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            finding(State::Denied).remark(AS_ROOT)
        }
        Ok(_) => finding(State::Readable),
        Err(_) => match probe.option(option) {
            Some("y") => finding(State::Off).remark("boot with sysctl.vm.mem_profiling=1"),
            Some(_) => finding(State::Off).remark(format!("the kernel is built without {option}")),
            None => finding(State::Missing).remark(format!("needs a kernel with {option}")),
        },
    }
}

fn page_owner(probe: &Probe<'_>) -> Finding {
    let gives = "who allocated the pages, those behind slabs too";
    let finding = |state| Finding::new("/sys/kernel/debug/page_owner", state, gives);
    let option = "CONFIG_PAGE_OWNER";
    let listed = probe.tree.list(DEBUG);
    match debugfs(probe) {
        State::Denied => return finding(State::Denied).remark(AS_ROOT),
        State::Missing if probe.option(option) != Some("n") => {
            return finding(State::Missing).remark("debugfs is not mounted");
        }
        _ => {}
    }
    if listed.is_ok_and(|entries| entries.iter().any(|e| e.name == "page_owner")) {
        return finding(State::Readable);
    }
    match probe.option(option) {
        Some("y") => finding(State::Off).remark("boot with page_owner=on"),
        Some(_) => finding(State::Off).remark(format!("the kernel is built without {option}")),
        None => finding(State::Off).remark(format!("needs {option} and page_owner=on at boot")),
    }
}

fn types(probe: &Probe<'_>) -> Finding {
    let gives = "the layout of kernel structures, for bpftrace and the like";
    let finding = Finding::new(
        "/sys/kernel/btf/vmlinux",
        state_of(&probe.peek("sys/kernel/btf/vmlinux")),
        gives,
    );
    match finding.state {
        State::Missing => finding.remark("needs a kernel with CONFIG_DEBUG_INFO_BTF"),
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_option_is_the_one_the_kernel_knows() {
        let debug = |kernel| boot_words(kernel).0;
        assert_eq!(debug(Some("5.14.0-570.el9.x86_64")), "slub_debug");
        assert_eq!(debug(Some("6.8.12")), "slub_debug");
        assert_eq!(debug(Some("6.9-rc1")), "slab_debug");
        assert_eq!(debug(Some("6.18.44")), "slab_debug");
        assert_eq!(debug(Some("7.0")), "slab_debug");
        assert_eq!(debug(Some("custom")), "slab_debug");
        assert_eq!(debug(None), "slab_debug");
    }

    #[test]
    fn options_for_slabs_are_picked_from_the_command_line() {
        assert_eq!(
            slab_options("quiet slab_nomerge root=/dev/slab_x slub_debug=FZ,dentry"),
            ["slab_nomerge", "slub_debug=FZ,dentry"]
        );
    }
}
