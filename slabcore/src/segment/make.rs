//! Making the segment: the file, the mapping, and what does not change afterwards.
//!
//! Source of truth for filters of system calls: seccomp(2). A filter may end the process at a
//! call that it does not know, and whether it would cannot be asked. So the first segment is a
//! memfd only if no filter was inherited, and a child's is shared memory without a file, which
//! takes one call that allocation needs as well; its number is asked for right at the fork,
//! the rest of who it is is its parent's.

use super::format::{
    BYTES, FIGURES, IDENTITY, LAYOUT, MAGIC, ORDER_MARK, SECTIONS, VERSION, figure, head, identity,
    pair, state,
};
use super::live::{self, Live, Own};
use super::place::{self, Place};
use super::{figures, layout};
use crate::generation::Generation;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering, Ordering::Relaxed};
use crate::sys;

/// The process's choice: of the first engine that wants a segment.
static CHOICE: Choice = Choice {
    lock: Lock::new(),
    kind: AtomicU32::new(0),
    path: AtomicU64::new(0),
    path_len: AtomicU64::new(0),
};

/// Milliseconds until figures are published for the first time, if there are few slow paths.
const SOON_MS: u64 = 50;

/// The process that is waited for at the end: the parent of this one when it began.
static WATCHER: AtomicU32 = AtomicU32::new(0);

/// Whether that process is still there and this one's parent.
pub(super) fn is_watched() -> bool {
    has_watcher() && sys::parent() == WATCHER.load(Relaxed)
}

/// Whether there was one, which is known without asking the system.
pub(super) fn has_watcher() -> bool {
    WATCHER.load(Relaxed) != 0
}

struct Choice {
    lock: Lock,
    /// 0 none yet, 1 memfd, 2 file.
    kind: AtomicU32,
    path: AtomicU64,
    path_len: AtomicU64,
}

/// An engine wants a segment. No lock is held.
pub(crate) fn begin(place: Place, watcher: u32) {
    let kind = match place {
        Place::Off => return,
        Place::Memfd => 1,
        Place::File(_) => 2,
    };
    if CHOICE.kind.load(Ordering::Acquire) == 0 {
        let _held = CHOICE.lock.lock();
        if CHOICE.kind.load(Relaxed) == 0 {
            if let Place::File(path) = place {
                CHOICE.path.store(path.as_ptr() as u64, Relaxed);
                CHOICE.path_len.store(path.len() as u64, Relaxed);
            }
            // Orphans may get the watcher as their parent later: nobody looks at those.
            if watcher != 0 && sys::parent() == watcher {
                WATCHER.store(watcher, Relaxed);
            }
            CHOICE.kind.store(kind, Ordering::Release);
        }
    }
    ensure();
}

fn chosen() -> Place {
    match CHOICE.kind.load(Ordering::Acquire) {
        0 => Place::Off,
        1 => Place::Memfd,
        _ => {
            let at = CHOICE.path.load(Relaxed) as usize as *const u8;
            // SAFETY: address and length of a `&'static str`, stored before the kind.
            let bytes =
                unsafe { std::slice::from_raw_parts(at, CHOICE.path_len.load(Relaxed) as usize) };
            Place::File(std::str::from_utf8(bytes).unwrap_or_default())
        }
    }
}

/// Has a child's segment made. The registry's lock may be held.
pub(crate) fn ready() {
    ensure();
}

/// The process's segment, made if there is none yet and it is wanted.
pub(super) fn ensure() -> Option<Live> {
    if let Some(live) = Live::current() {
        return Some(live);
    }
    let place = chosen();
    if place == Place::Off {
        return None;
    }
    let own = live::prepare()?;
    let turn = own.making.compare_exchange(0, 1, Ordering::AcqRel, Relaxed);
    turn.ok()?;
    // Another thread may have had its turn since: what it made is in use.
    if let Some(live) = Live::current() {
        own.making.store(0, Ordering::Release);
        return Some(live);
    }
    let made = make(own, place);
    // One that cannot be made is not tried again and again.
    own.making
        .store(if made.is_some() { 0 } else { 2 }, Ordering::Release);
    made
}

fn make(own: &Own, place: Place) -> Option<Live> {
    static FIRST: AtomicU32 = AtomicU32::new(0);
    let origin = Origin {
        is_first: FIRST.swap(1, Relaxed) == 0,
        parents: MAPPED.swap(0, Relaxed),
        filtered: false,
        has_file: false,
    };
    let (base, origin) = map(place, origin)?;
    let live = Live::at(base);
    let generation = Generation {
        first: live.word(head::GENERATION[0]),
        second: live.word(head::GENERATION[1]),
    };
    generation.change(|| {
        contents(live);
        identify(live, own, origin);
        describe(live);
    });
    if origin.parents != 0 {
        // SAFETY: the parent's mapping, which a child never uses: see `live`.
        unsafe { sys::unmap(origin.parents, BYTES) };
    }
    MAPPED.store(base, Relaxed);
    live.put(head::STATE, state::RUNS);
    let outlives = origin.has_file && place != Place::Memfd;
    own.outlives.store(outlives.into(), Relaxed);
    // A process that soon ends publishes at its end only.
    own.due.store(sys::coarse_ms() + SOON_MS, Relaxed);
    // Last: who finds the magic finds the rest.
    live.word(head::MAGIC)
        .store(u64::from_ne_bytes(MAGIC), Ordering::Release);
    own.base.store(base, Ordering::Release);
    super::publish::at_exit_once();
    Some(live)
}

/// Where the segment is mapped, for a child to read and unmap.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// What a segment comes from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    /// The program's first; else that of a child.
    is_first: bool,
    /// Address of the parent's, or 0.
    parents: usize,
    /// A filter was inherited at the start.
    filtered: bool,
    has_file: bool,
}

/// Maps memory for a segment: in a file if that may be asked for, or without one.
fn map(place: Place, mut origin: Origin) -> Option<(usize, Origin)> {
    origin.filtered = origin.is_first && sys::is_filtered();
    let file = if origin.is_first {
        // Who chose a file has to see to it that a filter allows one.
        let chosen = (!origin.filtered || place != Place::Memfd).then(|| place::open(place));
        let other = place != Place::Memfd && !origin.filtered;
        chosen
            .flatten()
            .or_else(|| other.then(|| place::open(Place::Memfd)).flatten())
    } else {
        let wanted = place.is_of_each() && !sys::is_filtered_now();
        wanted.then(|| place::open(place)).flatten()
    };
    if let Some(fd) = file {
        let base = sys::map_shared(Some(fd), BYTES);
        if base != 0 {
            origin.has_file = true;
            return Some((base, origin));
        }
        // SAFETY: our own descriptor.
        unsafe { libc::close(fd) };
    }
    let base = sys::map_shared(None, BYTES);
    (base != 0).then_some((base, origin))
}

fn contents(live: Live) {
    live.put_two(head::VERSION, VERSION, head::CONTENTS as u32);
    live.put(head::BYTES, BYTES as u64);
    live.put_two(head::ORDER, ORDER_MARK, SECTIONS.len() as u32);
    for (section, at) in SECTIONS.iter().zip((head::CONTENTS..).step_by(head::ENTRY)) {
        live.put_two(at, section.kind, section.record as u32);
        live.put(at + 8, section.at as u64);
        live.put(at + 16, section.count as u64);
    }
}

fn identify(live: Live, own: &Own, origin: Origin) {
    let at = IDENTITY.at;
    if own.pid.load(Relaxed) == 0 {
        own.pid.store(sys::pid(), Relaxed);
    }
    // To find the start means to open a file.
    let start = if origin.is_first || origin.has_file {
        sys::start_ticks()
    } else {
        0
    };
    live.put(at + identity::PID, own.pid.load(Relaxed).into());
    live.put(at + identity::START, start);
    live.put(at + identity::PAGE, sys::page_size() as u64);
    live.put(at + identity::MADE[0], crate::debug::operation::now_ns());
    live.put(at + identity::MADE[1], sys::real_ns());
    live.put(at + identity::AT, live.base() as u64);
    let engine = concat!("slabcore ", env!("CARGO_PKG_VERSION"));
    live.put_text(at + identity::ENGINE, identity::ENGINE_BYTES, engine);
    if origin.parents != 0 {
        let parents = Live::at(origin.parents);
        let user = parents.word(at + identity::UID).load(Relaxed);
        live.put(at + identity::UID, user);
        for place in (0..identity::PROGRAM_BYTES).step_by(8) {
            let place = at + identity::PROGRAM + place;
            live.put(place, parents.word(place).load(Relaxed));
        }
        return;
    }
    live.put(at + identity::UID, sys::uid().into());
    let mut path = [0; identity::PROGRAM_BYTES];
    let program = if origin.is_first && !origin.filtered {
        sys::program(&mut path)
    } else {
        sys::started_as()
    };
    live.put_text(at + identity::PROGRAM, identity::PROGRAM_BYTES, program);
}

fn describe(live: Live) {
    let mut at = LAYOUT.at;
    let end = LAYOUT.at + LAYOUT.record * LAYOUT.count;
    layout::each(|name, number| {
        if at < end {
            live.put_text(at, layout::NAME_BYTES, name);
            live.put(at + pair::NUMBER, number);
            at += pair::BYTES;
        }
    });
    for (of, at) in figures::all().zip((FIGURES.at..).step_by(figure::BYTES)) {
        let engine = u32::from(of.of == figures::Of::Engine);
        live.put_two(at + figure::OF, engine, of.rises.into());
        live.put_text(at + figure::NAME, layout::NAME_BYTES, of.name);
        live.put_text(at + figure::UNIT, figure::UNIT_BYTES, of.unit);
        live.put_text(at + figure::DOC, figure::DOC_BYTES, of.doc.trim());
    }
}

/// In a child of a fork: the parent's segment is not the child's. The only thread.
pub(crate) fn after_fork() {
    if let Some(own) = live::own() {
        // Where the system emptied the page this changes nothing.
        own.base.store(0, Relaxed);
        own.making.store(0, Relaxed);
        own.busy.store(0, Relaxed);
        own.done.store(0, Relaxed);
        own.due.store(0, Relaxed);
        own.looks.store(0, Relaxed);
        own.left.store(0, Relaxed);
        own.outlives.store(0, Relaxed);
        own.pid.store(sys::pid(), Relaxed);
    }
    WATCHER.store(0, Relaxed);
    CHOICE.lock.reset();
}
