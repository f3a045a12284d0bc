//! Reports that a real 6.12 kernel printed, written again from corruption planted here, byte for byte; and the forms
//! that it did not print, as goldens.

use super::*;
use crate::debug::check::{AnyLink, check_and_restore, check_slab_padding};
use crate::debug::depot::Handle;
use crate::debug::poison::{State, init_slab, on_alloc, on_free};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// Gives each name an address and writes it back.
#[derive(Default)]
struct Names(RefCell<Vec<String>>);

impl Names {
    fn address(&self, name: &str) -> usize {
        let mut names = self.0.borrow_mut();
        names.push(name.to_owned());
        names.len()
    }
}

impl Symbolize for Names {
    fn write_symbol(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        out.write_str(&self.0.borrow()[usize::try_from(address).unwrap() - 1])
    }
}

/// The number behind a key of a line, such as `age=1`.
fn number(line: &str, key: &str) -> u64 {
    let at = line.find(key).unwrap() + key.len();
    let text = line[at..].split([' ', '(']).next().unwrap();
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16))
        .unwrap()
}

/// A kernel report, and a slab with the same facts.
struct Scene {
    wanted: &'static str,
    names: Names,
    memory: Vec<AtomicU64>,
    layout: ObjectLayout,
    slab: Vec<u8>,
    slot_at: usize,
}

const NOW: u64 = 1_000_000_000;

impl Scene {
    /// A cache of 64-byte objects under FZPU, as the kernel had, all of them live.
    fn new(wanted: &'static str) -> Self {
        let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
        let mut slab = vec![0; 4096];
        init_slab(&mut slab, 25, &layout);
        for slot in slab.chunks_exact_mut(layout.slab_size()) {
            on_alloc(slot, &layout, 64);
        }
        let object = wanted.lines().find(|line| line.starts_with("Object 0x"));
        let slot_at = object.map_or(0, |line| {
            usize::try_from(number(line, "@offset=")).unwrap() - 8
        });
        let memory = (0..4096).map(|_| AtomicU64::new(0)).collect();
        let mut scene = Self {
            wanted,
            names: Names::default(),
            memory,
            layout,
            slab,
            slot_at,
        };
        scene.store_tracks();
        scene
    }

    fn slot(&mut self) -> &mut [u8] {
        &mut self.slab[self.slot_at..][..self.layout.slab_size()]
    }

    /// Takes the tracks from the report into the slot.
    fn store_tracks(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let depot = StackDepot::create(&memory).unwrap();
        for kind in [TrackKind::Allocated, TrackKind::Freed] {
            let start = format!("{} in ", kind.word());
            let mut lines = self
                .wanted
                .lines()
                .skip_while(|line| !line.starts_with(&start));
            let Some(head) = lines.next() else { continue };
            let name = &head[start.len()..head.find(" age=").unwrap()];
            let frames: Vec<usize> = lines
                .map_while(|line| line.strip_prefix(' '))
                .map(|name| self.names.address(name))
                .collect();
            let track = Track {
                caller: self.names.address(name) as u64,
                stack: depot.save(&frames),
                cpu: u32::try_from(number(head, "cpu=")).unwrap(),
                thread: u32::try_from(number(head, "pid=")).unwrap(),
                time_ns: NOW - number(head, "age=") * 1_000_000,
            };
            let layout = self.layout;
            track.store(self.slot(), &layout, kind);
        }
        self.memory = memory;
    }

    fn reporter(&self) -> Reporter<'_> {
        let slab = self
            .wanted
            .lines()
            .find(|line| line.starts_with("Slab 0x"))
            .unwrap();
        let object = self
            .wanted
            .lines()
            .find(|line| line.starts_with("Object 0x"));
        let banner = self
            .wanted
            .lines()
            .find(|line| line.starts_with("BUG "))
            .unwrap();
        let (cache, rest) = banner[4..].split_once(" (").unwrap();
        Reporter {
            cache,
            taint: rest.split_once("): ").unwrap().0,
            slab: SlabView {
                descriptor: number(slab, "Slab "),
                memory: object.map_or(0, |line| number(line, "Object ") - number(line, "@offset=")),
                objects: 25,
                used: u32::try_from(number(slab, "used=")).unwrap(),
                free_pointer: number(slab, "fp="),
                flags: number(slab, "flags="),
                flag_names: slab
                    .split_once("flags=")
                    .unwrap()
                    .1
                    .split_once('(')
                    .unwrap()
                    .1
                    .trim_end_matches(')'),
            },
            depot: StackDepot::attach(&self.memory),
            symbols: &self.names,
            now_ns: NOW,
            trace: None,
        }
    }

    fn view<'a>(&self, slot: &'a [u8], layout: &'a ObjectLayout) -> ObjectView<'a> {
        let object = self
            .wanted
            .lines()
            .find(|line| line.starts_with("Object 0x"))
            .unwrap();
        let free_pointer = if object.contains("fp=") {
            number(object, "fp=")
        } else {
            0
        };
        ObjectView {
            slot,
            slot_at: self.slot_at,
            layout,
            free_pointer,
            before: &[],
        }
    }

    /// Checks the slot and compares the report of what is found.
    fn check(mut self, state: State) {
        let layout = self.layout;
        let mut slot = self.slot().to_vec();
        let mut text = String::new();
        let mut first = true;
        check_and_restore(&mut slot, state, &layout, &AnyLink, |damage, slot| {
            self.reporter()
                .damage(&mut text, damage, &self.view(slot, &layout), first)
                .unwrap();
            first = false;
        });
        assert_eq!(text, self.wanted);
    }
}

#[test]
fn overflow_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!("../../tests/data/report-6.12-overflow.txt"));
    scene.slot()[72..74].copy_from_slice(&[0x12, 0x34]);
    scene.check(State::Live);
}

#[test]
fn underflow_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!("../../tests/data/report-6.12-underflow.txt"));
    scene.slot()[7] = 0x56;
    scene.check(State::Live);
}

#[test]
fn use_after_free_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!(
        "../../tests/data/report-6.12-use-after-free.txt"
    ));
    let layout = scene.layout;
    on_free(scene.slot(), &layout);
    scene.slot()[8] = 0x78;
    scene.check(State::Free);
}

#[test]
fn double_free_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!("../../tests/data/report-6.12-double-free.txt"));
    let layout = scene.layout;
    on_free(scene.slot(), &layout);
    let slot = scene.slot().to_vec();
    let reporter = scene.reporter();
    let mut text = String::new();
    reporter
        .object(&mut text, Reason::AlreadyFree, &scene.view(&slot, &layout))
        .unwrap();
    let pointer = reporter.slab.memory + (scene.slot_at + 8) as u64;
    reporter.fix(&mut text, Fix::NotFreed { pointer }).unwrap();
    assert_eq!(text, scene.wanted);
}

#[test]
fn a_freed_interior_pointer_reads_as_in_the_kernel() {
    let scene = Scene::new(include_str!("../../tests/data/report-6.12-bad-free.txt"));
    let reporter = scene.reporter();
    let mut text = String::new();
    let banner = scene.wanted.lines().nth(1).unwrap();
    let pointer = number(banner, "pointer ");
    reporter
        .slab(&mut text, Reason::InvalidPointer { pointer })
        .unwrap();
    reporter.fix(&mut text, Fix::NotFreed { pointer }).unwrap();
    assert_eq!(text, scene.wanted);
}

#[test]
fn a_broken_chain_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!("../../tests/data/report-6.12-freeptr.txt"));
    let layout = scene.layout;
    on_free(scene.slot(), &layout);
    let slot = scene.slot().to_vec();
    let reporter = scene.reporter();
    let mut text = String::new();
    reporter
        .object(
            &mut text,
            Reason::FreechainCorrupt,
            &scene.view(&slot, &layout),
        )
        .unwrap();
    reporter
        .slab(
            &mut text,
            Reason::WrongCount {
                counter: 10,
                counted: 24,
            },
        )
        .unwrap();
    reporter.fix(&mut text, Fix::CountAdjusted).unwrap();
    assert_eq!(text, scene.wanted);
}

#[test]
fn a_leak_reads_as_in_the_kernel() {
    let mut scene = Scene::new(include_str!("../../tests/data/report-6.12-leak.txt"));
    let layout = scene.layout;
    let slot = scene.slot().to_vec();
    let mut text = String::new();
    let live = std::iter::once(scene.view(&slot, &layout));
    scene.reporter().objects_remaining(&mut text, live).unwrap();
    assert_eq!(text, scene.wanted);
}

fn plain_reporter() -> Reporter<'static> {
    Reporter {
        cache: "kmalloc-32",
        taint: NOT_TAINTED,
        slab: SlabView {
            descriptor: 0x7f00_0000_0040,
            memory: 0x7f00_0010_0000,
            objects: 31,
            used: 1,
            free_pointer: 0x7f00_0010_0090,
            flags: 3,
            flag_names: "debug|node=0",
        },
        depot: None,
        symbols: &Addresses,
        now_ns: 5_000_000,
        trace: None,
    }
}

#[test]
fn slack_of_a_kmalloc_object_with_a_trace() {
    let layout = ObjectLayout::new(32, 8, DebugFlags::DEFAULT, false, true).unwrap();
    let mut slot = vec![0; layout.slab_size()];
    init_slab(&mut slot, 1, &layout);
    on_alloc(&mut slot, &layout, 18);
    let track = Track {
        caller: 0x40_1000,
        stack: Handle::new(5),
        cpu: 1,
        thread: 42,
        time_ns: 2_000_000,
    };
    track.store(&mut slot, &layout, TrackKind::Allocated);
    slot[layout.object()][..18].copy_from_slice(b"eighteen letters !");
    slot[layout.object()][18..20].fill(0xab);
    slot[layout.padding().start] = 0;
    let reporter = Reporter {
        trace: Some(Trace {
            cpu: 1,
            thread: 42,
            name: "worker",
            frames: &[0x1000, 0x2000],
        }),
        ..plain_reporter()
    };
    let mut text = String::new();
    let mut first = true;
    check_and_restore(&mut slot, State::Live, &layout, &AnyLink, |damage, slot| {
        let view = ObjectView {
            slot,
            slot_at: 0,
            layout: &layout,
            free_pointer: 0,
            before: &[],
        };
        reporter.damage(&mut text, damage, &view, first).unwrap();
        first = false;
    });
    insta::assert_snapshot!(text, @r#"
    [kmalloc Redzone overwritten] 0x00007f000010001a-0x00007f000010001b @offset=26. First byte 0xab instead of 0xcc
    =============================================================================
    BUG kmalloc-32 (Not tainted): Object corrupt
    -----------------------------------------------------------------------------

    Allocated in 0x401000 age=3 cpu=1 pid=42
    object allocation/free stack trace missing
    Slab 0x00007f0000000040 objects=31 used=1 fp=0x00007f0000100090 flags=0x3(debug|node=0)
    Object 0x00007f0000100008 @offset=8 fp=0x0000000000000000

    Redzone  00007f0000100000: cc cc cc cc cc cc cc cc                          ........
    Object   00007f0000100008: 65 69 67 68 74 65 65 6e 20 6c 65 74 74 65 72 73  eighteen letters
    Object   00007f0000100018: 20 21 ab ab cc cc cc cc cc cc cc cc cc cc cc cc   !..............
    Redzone  00007f0000100028: cc cc cc cc cc cc cc cc                          ........
    Padding  00007f0000100080: 00 5a 5a 5a 5a 5a 5a 5a                          .ZZZZZZZ
    CPU: 1 PID: 42 Comm: worker Not tainted
    Call Trace:
     <TASK>
     0x1000
     0x2000
     </TASK>
    FIX kmalloc-32: Restoring kmalloc Redzone 0x00007f000010001a-0x00007f000010001b=0xcc
    [Object padding overwritten] 0x00007f0000100080-0x00007f0000100080 @offset=128. First byte 0x0 instead of 0x5a
    FIX kmalloc-32: Restoring Object padding 0x00007f0000100080-0x00007f0000100080=0x5a
    "#);
}

#[test]
fn padding_of_a_slab() {
    let layout = ObjectLayout::new(64, 8, DebugFlags::DEFAULT, false, false).unwrap();
    let mut slab = vec![0x5a; 4096 - 64];
    slab[4010] = b'!';
    let damage = check_slab_padding(&slab, 25, &layout).unwrap();
    let mut text = String::new();
    plain_reporter()
        .slab_padding(&mut text, &damage, &slab[4000..], 4000)
        .unwrap();
    insta::assert_snapshot!(text, @r#"
    =============================================================================
    BUG kmalloc-32 (Not tainted): Padding overwritten. 0x00007f0000100faa-0x00007f0000100faa @offset=4010
    -----------------------------------------------------------------------------

    Padding 00007f0000100fa0: 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 21 5a 5a 5a 5a 5a  ZZZZZZZZZZ!ZZZZZ
    Padding 00007f0000100fb0: 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a  ZZZZZZZZZZZZZZZZ
    Slab 0x00007f0000000040 objects=31 used=1 fp=0x00007f0000100090 flags=0x3(debug|node=0)
    FIX kmalloc-32: Restoring slab padding 0x00007f0000100faa-0x00007f0000100faa=0x5a
    "#);
}

#[test]
fn an_object_without_red_zones_shows_what_is_before_it() {
    let layout = ObjectLayout::new(12, 8, DebugFlags::NONE, false, false).unwrap();
    let view = ObjectView {
        slot: b"short object\0\0\0\0",
        slot_at: 32,
        layout: &layout,
        free_pointer: 0,
        before: b"dropped0123456789abcdef",
    };
    let reporter = plain_reporter();
    let mut text = String::new();
    reporter
        .object(&mut text, Reason::FreepointerCorrupt, &view)
        .unwrap();
    reporter
        .operation(&mut text, TrackKind::Allocated, &view)
        .unwrap();
    reporter
        .operation(&mut text, TrackKind::Freed, &view)
        .unwrap();
    reporter
        .bad_pointer(&mut text, Reason::FreelistPointerFails, 0x10)
        .unwrap();
    write_foreign_pointer(&mut text, TAINTED, 0x7fff_0000_1234).unwrap();
    insta::assert_snapshot!(text, @r#"
    =============================================================================
    BUG kmalloc-32 (Not tainted): Freepointer corrupt
    -----------------------------------------------------------------------------

    Slab 0x00007f0000000040 objects=31 used=1 fp=0x00007f0000100090 flags=0x3(debug|node=0)
    Object 0x00007f0000100020 @offset=32 fp=0x0000000000000000

    Bytes b4 00007f0000100010: 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef
    Object   00007f0000100020: 73 68 6f 72 74 20 6f 62 6a 65 63 74              short object
    TRACE kmalloc-32 alloc 0x00007f0000100020 inuse=1 fp=0x00007f0000100090
    TRACE kmalloc-32 free 0x00007f0000100020 inuse=1 fp=0x00007f0000100090
    Object 00007f0000100020: 73 68 6f 72 74 20 6f 62 6a 65 63 74              short object
    =============================================================================
    BUG kmalloc-32 (Not tainted): Freelist Pointer check fails
    -----------------------------------------------------------------------------

    Slab 0x00007f0000000040 objects=31 used=1 fp=0x00007f0000100090 flags=0x3(debug|node=0)
    Invalid pointer 0x0000000000000010
    =============================================================================
    BUG <unknown> (Tainted: G    B             ): No slab cache for object 0x00007fff00001234
    -----------------------------------------------------------------------------
    "#);
}

#[test]
fn reasons_and_fixes_read_as_in_the_kernel() {
    let reasons = [
        Reason::OutsideSlab { pointer: 1 },
        Reason::OtherCache,
        Reason::FreelistCycle,
        Reason::NotASlab,
        Reason::TooManyObjects {
            objects: 26,
            max: 25,
        },
        Reason::TooManyInUse { inuse: 26, max: 25 },
        Reason::Disabled,
        Reason::WrongNumber {
            found: 24,
            expected: 25,
        },
    ];
    let fixes = [
        Fix::FreelistCleared,
        Fix::NumberAdjusted,
        Fix::AllUsed,
        Fix::Isolated,
    ];
    let mut text = String::new();
    for reason in reasons {
        writeln!(text, "{reason}").unwrap();
    }
    for fix in fixes {
        writeln!(text, "{fix}").unwrap();
    }
    insta::assert_snapshot!(text, @r#"
    Attempt to free object(0x0000000000000001) outside of slab
    page slab pointer corrupt.
    Freelist cycle detected
    Not a valid slab page
    objects 26 > max 25
    inuse 26 > max 25
    Slab disabled since SLUB metadata consistency check failed
    Wrong number of objects. Found 24 but should be 25
    Freelist cleared
    Number of objects adjusted
    Marking all objects used
    Isolate corrupted freechain
    "#);
}
