//! The debugging functions run inside an allocator, so they must not call one.

#![cfg(all(target_env = "gnu", not(loom)))]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write;
use std::sync::atomic::AtomicU64;

use slabcore::debug::check::{AnyLink, check_and_restore, check_slab_padding, looks};
use slabcore::debug::depot::{StackDepot, capture};
use slabcore::debug::flags::DebugOptions;
use slabcore::debug::layout::ObjectLayout;
use slabcore::debug::poison::{State, init_slab, on_alloc, on_free};
use slabcore::debug::report::{Addresses, NOT_TAINTED, ObjectView, Reporter, SlabView};
use slabcore::debug::track::{Track, TrackKind};
use slabcore::finding::{Fault, Finding};
use slabcore::{CacheBuilder, DebugFlags, Engine, EngineConfig, Report};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(pointer: *mut c_void);
}

// The program's functions take the place of the C library's, for Rust and for every shared library.

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    count();
    // SAFETY: the same function under its other name.
    unsafe { __libc_malloc(size) }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(elements: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: the same function under its other name.
    unsafe { __libc_calloc(elements, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: the caller's promise is passed on.
    unsafe { __libc_realloc(pointer, size) }
}

#[test]
fn allocations_inside_shared_libraries_are_counted() {
    let before = CALLS.with(Cell::get);
    let text: &CStr = c"text";
    // SAFETY: a valid string, and its copy is freed once.
    unsafe { free(strdup(text.as_ptr()).cast()) };
    assert_eq!(CALLS.with(Cell::get), before + 1);
    drop(std::hint::black_box(vec![1u8]));
    assert_eq!(CALLS.with(Cell::get), before + 2);
}

/// Text in a fixed buffer.
struct Fixed {
    bytes: [u8; 8192],
    len: usize,
}

impl Write for Fixed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self
            .bytes
            .get_mut(self.len..self.len + text.len())
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[test]
fn debugging_an_object_allocates_nothing() {
    static WORDS: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
    let mut slab = [0u8; 4096];
    let mut out = Fixed {
        bytes: [0; 8192],
        len: 0,
    };
    let before = CALLS.with(Cell::get);

    let flags = DebugOptions::parse("FZPU,kmalloc-*;-")
        .flags_for("kmalloc-64")
        .unwrap();
    let layout = ObjectLayout::new(64, 8, flags, false, true).unwrap();
    let size = layout.slab_size();
    let objects = slab.len() / size;
    init_slab(&mut slab, objects, &layout);
    let depot = StackDepot::create(&WORDS).unwrap();
    let mut frames = [0; 16];
    let count = capture(0, &mut frames);
    let track = Track {
        caller: frames[0] as u64,
        stack: depot.save(&frames[..count]),
        ..Track::default()
    };
    assert!(track.stack.is_some());
    let slot = &mut slab[size..2 * size];
    on_alloc(slot, &layout, 40);
    track.store(slot, &layout, TrackKind::Allocated);
    slot[layout.object().start + 40] = 1;
    let reporter = Reporter {
        cache: "kmalloc-64",
        taint: NOT_TAINTED,
        slab: SlabView {
            descriptor: 1,
            memory: 4096,
            objects: 1,
            used: 1,
            free_pointer: 0,
            flags: 0,
            flag_names: "node=0",
        },
        depot: Some(depot),
        symbols: &Addresses,
        now_ns: 0,
        trace: None,
    };
    let damaged = check_and_restore(slot, State::Live, &layout, &AnyLink, |damage, slot| {
        let view = ObjectView {
            slot,
            slot_at: size,
            layout: &layout,
            free_pointer: 0,
            before: &[],
        };
        reporter.damage(&mut out, damage, &view, true).unwrap();
        writeln!(
            out,
            "{}",
            Finding::new(0, 0, Fault::Damage(damage.kind()))
                .of_object(1, slot, &layout)
                .with_damage(damage, Some(&layout))
        )
        .unwrap();
    });
    let _ = looks(slot, &layout);
    on_free(slot, &layout);
    let clean = check_slab_padding(&slab, objects, &layout).is_none();

    assert_eq!(CALLS.with(Cell::get), before);
    assert!(clean && damaged == 1 && out.len > 500);
}

#[test]
fn a_debug_cache_and_its_reports_allocate_nothing() {
    fn watch(text: &str) {
        assert!(text.contains("BUG quiet ("), "{text}");
        REPORTS.set(REPORTS.get() + 1);
    }
    thread_local!(static REPORTS: Cell<usize> = const { Cell::new(0) });
    let config = EngineConfig {
        report: Report::Call(watch),
        ..EngineConfig::new()
    };
    let engine = Engine::new(config).unwrap();
    let before = CALLS.with(Cell::get);
    let layout = std::alloc::Layout::new::<[u64; 8]>();
    let builder = CacheBuilder::new(&engine, "quiet", layout);
    let cache = builder.debug_flags(DebugFlags::DEFAULT).build().unwrap();
    let (first, second) = (cache.alloc().unwrap(), cache.alloc().unwrap());
    // SAFETY: the byte behind the object is in its slot. The second free is refused.
    unsafe {
        first.as_ptr().add(64).write_volatile(1);
        cache.free(first);
        cache.free(second);
        cache.free(second);
    }
    assert_eq!(CALLS.with(Cell::get), before);
    assert_eq!(REPORTS.get(), 2);
}
