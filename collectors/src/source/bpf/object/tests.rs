//! The objects, and what the kernel says to them, for the structures of several kernels.

use std::collections::BTreeMap;

use aya::Endianness;
use aya::programs::RawTracePoint;

use super::*;

#[test]
fn lists_of_what_is_possible_are_counted_by_their_last_number() {
    assert_eq!(count_of("0-127\n"), Some(128));
    assert_eq!(count_of("0"), Some(1));
    assert_eq!(count_of("0,2-3\n"), Some(4));
    assert_eq!(count_of(""), None);
}

#[test]
fn without_a_list_of_processors_there_is_no_figure() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path();
    assert_eq!(possible_in(system, "node"), Ok(1));
    assert!(possible_in(system, "cpu").is_err());
    fs::create_dir(system.join("cpu")).unwrap();
    for (text, count) in [("0-63\n", Some(64)), ("\n", None), ("all\n", None)] {
        fs::write(system.join("cpu/possible"), text).unwrap();
        assert_eq!(possible_in(system, "cpu").ok(), count, "{text:?}");
    }
}

#[test]
fn a_refusal_is_one_line_that_ends_with_the_kernels_reason() {
    #[derive(Debug, thiserror::Error)]
    #[error("the call failed\n0: (85) call 113\nR1 is wrong\nprocessed 9 insns")]
    struct Outer(#[source] std::io::Error);
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let said = refused("loading", &Outer(denied)).to_string();
    assert_eq!(
        said,
        "loading: the call failed: R1 is wrong: permission denied"
    );
}

#[test]
fn a_log_that_is_empty_is_not_announced() {
    #[derive(Debug, thiserror::Error)]
    #[error("the call failed: permission denied. Verifier output: ")]
    struct Outer(#[source] std::io::Error);
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let said = refused("loading", &Outer(denied)).to_string();
    assert_eq!(said, "loading: the call failed: permission denied.");
}

/// The bytes are what the loader of the kernel's own format wants.
#[test]
fn the_object_is_there_and_aligned() {
    assert_eq!(&SNAPSHOT[..4], b"\x7fELF");
    assert_eq!(SNAPSHOT.as_ptr().addr() % 8, 0);
}

/// Types of other kernels, cut to what the programs read, and the programs that
/// are for them; of kernels for which docs/BPF.md says that they work.
const LAYOUTS: &[(&str, &[u8], &[&str])] = &[
    (
        "6.1",
        include_bytes!("../../../../tests/data/btf/6.1.btf"),
        &["list"],
    ),
    (
        "6.12",
        include_bytes!("../../../../tests/data/btf/6.12.btf"),
        &["list"],
    ),
    (
        "6.18",
        include_bytes!("../../../../tests/data/btf/6.18.btf"),
        &["caches", "list"],
    ),
    (
        "7.0",
        include_bytes!("../../../../tests/data/btf/7.0.btf"),
        &["caches", "list"],
    ),
    (
        "7.3",
        include_bytes!("../../../../tests/data/btf/7.3.btf"),
        &["caches", "list"],
    ),
];

const SOME_ADDRESS: u64 = 0xffff_8000_1234_5678;

/// A program for another kernel's structures would read nonsense here, and is
/// never run; but this kernel's verifier tells whether something is reachable
/// that the other kernel does not have.
#[test]
fn the_programs_are_sound_for_the_structures_of_every_kernel() {
    let machine = match Machine::look() {
        Ok(machine) => machine,
        Err(refusal) => {
            eprintln!("skipped: no BPF here: {refusal}");
            return;
        }
    };
    let over = BTreeMap::from([("caches", "kmem_cache"), ("list", "bpf_map")]);
    for (kernel, types, programs) in LAYOUTS {
        let types = Btf::parse(types, Endianness::default()).unwrap();
        // Without an address the list's program would end at once.
        let loaded = machine.load_for(&types, SNAPSHOT, |loader| {
            loader.override_global("slab_caches", &SOME_ADDRESS, true);
        });
        let mut ebpf = loaded.unwrap();
        for program in *programs {
            let loaded = machine.load_iterator(&mut ebpf, program, over[program]);
            assert!(loaded.is_ok(), "{program} for {kernel}: {loaded:?}");
        }
    }
}

/// The same of programs at tracepoints, which are for every kernel.
#[test]
fn tracepoints_programs_are_sound_for_the_structures_of_every_kernel() {
    let machine = match Machine::look() {
        Ok(machine) => machine,
        Err(refusal) => {
            eprintln!("skipped: no BPF here: {refusal}");
            return;
        }
    };
    let events = ["kmem_cache_alloc", "kmem_cache_free", "kmalloc", "kfree"];
    for (kernel, types, _) in LAYOUTS {
        let types = Btf::parse(types, Endianness::default()).unwrap();
        // What constants leave out is not looked at.
        let uses = [
            (PATHS, &["mm_page_free"][..], 0u32),
            (PATHS, &["mm_page_free"], 1),
            (LIVE, &[], 0),
        ];
        for (object, more, paths) in uses {
            let loaded = machine.load_for(&types, object, |loader| {
                loader
                    .override_global("page_key", &SOME_ADDRESS, true)
                    .override_global("paths", &paths, false);
            });
            let mut ebpf = loaded.unwrap();
            if more.len() == 1 {
                let loaded = machine.load_iterator(&mut ebpf, "observe", "bpf_map");
                assert!(loaded.is_ok(), "observe for {kernel}: {loaded:?}");
            }
            for event in events.iter().chain(more) {
                let program: &mut RawTracePoint = named(&mut ebpf, &format!("on_{event}")).unwrap();
                let loaded = program.load();
                assert!(loaded.is_ok(), "{event} for {kernel}: {loaded:?}");
            }
        }
    }
}
