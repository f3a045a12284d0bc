//! Making the segment: the file, the mapping, and what does not change afterwards.

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

/// The process that is waited for at the end.
static WATCHER: AtomicU32 = AtomicU32::new(0);

/// Whether that process is there and this one's parent.
pub(super) fn is_watched() -> bool {
    let watcher = WATCHER.load(Relaxed);
    watcher != 0 && sys::parent() == watcher
}

struct Choice {
    lock: Lock,
    /// 0 none yet, 1 memfd, 2 file.
    kind: AtomicU32,
    path: AtomicU64,
    path_len: AtomicU64,
}

/// The open file, for a child to close its copy: descriptor + 1, device and inode.
static FILE: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

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
            WATCHER.store(watcher, Relaxed);
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
    leave_parents();
    // A file that is there already is another process's, or that of the program before `exec`.
    let fd = place::open(place).or_else(|| match place {
        Place::File(_) => place::open(Place::Memfd),
        _ => None,
    })?;
    let base = sys::map_shared(fd, BYTES);
    if base == 0 {
        // SAFETY: our own descriptor.
        unsafe { libc::close(fd) };
        return None;
    }
    MAPPED.store(base, Relaxed);
    remember(fd);
    let live = Live::at(base);
    let generation = Generation {
        first: live.word(head::GENERATION[0]),
        second: live.word(head::GENERATION[1]),
    };
    generation.change(|| {
        contents(live);
        identify(live);
        describe(live);
    });
    live.put(head::STATE, state::RUNS);
    // Last: who finds the magic finds the rest.
    live.word(head::MAGIC)
        .store(u64::from_ne_bytes(MAGIC), Ordering::Release);
    own.base.store(base, Ordering::Release);
    super::publish::at_exit_once();
    Some(live)
}

/// Where the segment is mapped, for a child to unmap.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

fn remember(fd: i32) {
    let Some((device, inode)) = sys::file_id(fd) else {
        return;
    };
    FILE[1].store(device, Relaxed);
    FILE[2].store(inode, Relaxed);
    FILE[0].store(u64::from(fd.unsigned_abs()) + 1, Relaxed);
}

/// Closes a child's copy of its parent's descriptor, if the number still stands for it, and
/// ends its copy of the mapping.
fn leave_parents() {
    let base = MAPPED.swap(0, Relaxed);
    if base != 0 {
        // SAFETY: the parent's mapping, which a child never uses: see `live`.
        unsafe { sys::unmap(base, BYTES) };
    }
    let Some(fd) = FILE[0].swap(0, Relaxed).checked_sub(1) else {
        return;
    };
    if sys::file_id(fd as i32) == Some((FILE[1].load(Relaxed), FILE[2].load(Relaxed))) {
        // SAFETY: the same file as the one that this module opened under that number.
        unsafe { libc::close(fd as i32) };
    }
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

fn identify(live: Live) {
    let at = IDENTITY.at;
    live.put(at + identity::PID, sys::pid().into());
    live.put(at + identity::START, sys::start_ticks());
    live.put(at + identity::UID, sys::uid().into());
    live.put(at + identity::PAGE, sys::page_size() as u64);
    live.put(at + identity::MADE[0], crate::debug::operation::now_ns());
    live.put(at + identity::MADE[1], sys::real_ns());
    live.put(at + identity::AT, live.base() as u64);
    let engine = concat!("slabcore ", env!("CARGO_PKG_VERSION"));
    live.put_text(at + identity::ENGINE, identity::ENGINE_BYTES, engine);
    let mut path = [0; identity::PROGRAM_BYTES];
    let program = sys::program(&mut path);
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
    }
    CHOICE.lock.reset();
}
