//! Helpers of the tests of debug caches: engines whose reports are kept, and faulty programs.
// Helpers of tests fail by panicking; no test program uses all of them.
#![allow(clippy::unwrap_used, dead_code)]

use slabcore::debug::check::DamageKind;
use slabcore::debug::layout::ObjectLayout;
use slabcore::finding::{Fault, Finding};
use slabcore::{Cache, CacheBuilder, DebugFlags, Engine, EngineConfig, Policy, Report};
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;

thread_local!(static LOG: RefCell<String> = const { RefCell::new(String::new()) });

pub fn keep(text: &str) {
    LOG.with_borrow_mut(|log| log.push_str(text));
}

/// What was reported on this thread since the last call.
pub fn log() -> String {
    LOG.take()
}

pub fn config(policy: Policy) -> EngineConfig {
    EngineConfig {
        policy,
        report: Report::Call(keep),
        ..EngineConfig::new()
    }
}

/// An engine and a cache of 64-byte objects with some of them live, under each policy.
pub fn each(flags: &str, test: impl Fn(&Engine, &Cache)) {
    for policy in Policy::ALL {
        let engine = Engine::new(config(policy)).unwrap();
        let cache = cache(&engine, "sb-64", 64, flags);
        let bystanders: Vec<_> = (0..5).map(|_| cache.alloc().unwrap()).collect();
        test(&engine, &cache);
        goes_on(&engine, &cache, &[]);
        for object in bystanders {
            free(&cache, object);
        }
        assert_eq!(log(), "", "{policy:?}: bystanders are whole");
    }
}

pub fn cache(engine: &Engine, name: &str, size: usize, flags: &str) -> Cache {
    let layout = Layout::from_size_align(size, 8).unwrap();
    let flags = flags.parse().unwrap();
    let builder = CacheBuilder::new(engine, name, layout);
    builder.debug_flags(flags).build().unwrap()
}

/// The engine still works and is sound, and none of `gone` is handed out again.
pub fn goes_on(engine: &Engine, cache: &Cache, gone: &[NonNull<u8>]) {
    assert_eq!(engine.validate().findings, [], "the repair holds");
    let objects: Vec<_> = (0..300).map(|_| cache.alloc().unwrap()).collect();
    for object in &objects {
        assert!(!gone.contains(object), "an object in quarantine came back");
        // SAFETY: the object is ours and at least that large.
        unsafe { object.as_ptr().write_bytes(0x77, cache.object_size()) };
    }
    assert_eq!(engine.validate().findings, []);
    for object in objects {
        free(cache, object);
    }
    assert_eq!(engine.validate().findings, []);
    assert_eq!(log(), "", "nothing more to report");
}

pub fn free(cache: &Cache, object: NonNull<u8>) {
    // SAFETY: what must not be freed is what the tests are about; a debug cache refuses it.
    unsafe { cache.free(object) };
}

/// Writes a byte somewhere around an object, as the faulty program does.
pub fn poke(object: NonNull<u8>, at: isize, value: u8) {
    // SAFETY: the address is in the object's slab, which is mapped.
    unsafe { object.as_ptr().offset(at).write_volatile(value) };
}

pub fn peek(object: NonNull<u8>, at: isize) -> u8 {
    // SAFETY: as above.
    unsafe { object.as_ptr().offset(at).read_volatile() }
}

pub fn faults(engine: &Engine) -> Vec<Fault> {
    let found = engine.validate().findings;
    found.iter().map(|finding| finding.kind).collect()
}

/// The only finding, which must be about bytes.
pub fn only_bytes(engine: &Engine) -> Finding {
    match engine.validate().findings[..] {
        [finding] if matches!(finding.kind, Fault::Damage(_)) => finding,
        ref other => panic!("{other:?}"),
    }
}

/// The damage of one byte, to be found by validation.
pub fn one_byte(engine: &Engine, part: DamageKind, at: isize, value: u8, expected: u8) -> Finding {
    let bytes = only_bytes(engine);
    assert_eq!(
        (bytes.kind, bytes.offset, bytes.len, bytes.expected),
        (Fault::Damage(part), Some(at), 1, Some(expected))
    );
    assert_eq!(bytes.found.unwrap().bytes(), [value]);
    let log = log();
    for line in [
        format!("[{part}] 0x"),
        format!("First byte 0x{value:x} instead of 0x{expected:x}"),
        "BUG sb-64 (".into(),
        "): Object corrupt\n".into(),
        format!("FIX sb-64: Restoring {} 0x", part.what()),
    ] {
        assert!(log.contains(&line), "{line} is not in\n{log}");
    }
    bytes
}

/// Where a word of the layout is, counted from the object.
pub fn from_object(flags: &str, of: impl Fn(&ObjectLayout) -> usize) -> isize {
    let flags: DebugFlags = flags.parse().unwrap();
    let layout = ObjectLayout::new(64, 8, flags, false, false).unwrap();
    of(&layout).cast_signed() - layout.object_at().cast_signed()
}
