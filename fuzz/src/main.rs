//! Coverage-guided fuzzing of everything that reads foreign bytes.
//!
//! One program for all targets, since linking one for each costs minutes: the
//! environment variable `FUZZ_TARGET` names the target, `run.sh` sets it.
#![no_main]

#[path = "../../slabcore/tests/support/changed.rs"]
mod changed;
mod check;
mod memory;
mod process;
mod targets;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: memory::Counted = memory::Counted;

type Target = fn(&[u8]);

fn target() -> Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let found = targets::ALL.iter().find(|(n, _)| *n == name);
        let Some((_, run)) = found else {
            let names: Vec<&str> = targets::ALL.iter().map(|(n, _)| *n).collect();
            eprintln!("FUZZ_TARGET must be one of: {}", names.join(" "));
            std::process::exit(2);
        };
        *run
    })
}

fuzz_target!(|input: &[u8]| target()(input));
