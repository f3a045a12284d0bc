//! Debugging of one cache: what its bytes are, what is checked when, what is reported.
//!
//! Source of truth: `alloc_debug_processing`, `free_debug_processing`, `check_object` and their callers in `mm/slub.c`,
//! Linux 6.12. Differences: only the damaged object goes out of use, not its whole slab; and a free list that was cut
//! has its lost objects put out of use.
//!
//! Rules of the unsafe code: the node's lock is held. A slot that is free, or that its user is giving back, is nobody
//! else's and may be a slice; a live one is read through [`super::raw`] only.

use core::fmt::{self, Write};
use core::sync::atomic::AtomicU64 as RealU64;

use super::check::{LinkRule, check_and_restore};
use super::depot::StackDepot;
use super::flags::DebugFlags;
use super::layout::{LayoutSpec, ObjectLayout};
use super::operation::{Operation, now_ns, thread_name};
use super::poison::{self, State};
use super::quarantine::{Held, Quarantine};
use super::reason::Fix;
use super::report::{NOT_TAINTED, ObjectView, Reporter, SlabView, TAINTED, Trace};
use super::symbols::Later;
use super::track::TrackKind;
use crate::engine::EngineCore;
use crate::finding::{Fault, Finding};
use crate::hooks::{ObjectRef, SlabRef};
use crate::slab::NONE;
use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Bytes for the stacks of an engine's debug caches; only what is used is touched.
pub(crate) const DEPOT_BYTES: usize = 8 << 20;
/// Upper bytes of the word that the link is the lowest two bytes of, where the word is not part of the object.
pub(crate) const LINK_PATTERN: u64 = 0x5a5a_5a5a_5a5a_0000;
const NODE_NAMES: [&str; crate::core::MAX_NODES] = [
    "node=0", "node=1", "node=2", "node=3", "node=4", "node=5", "node=6", "node=7",
];

/// Which words hold a good link.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkOf {
    objects: u16,
    outside: bool,
    /// What stands there now, so that a repair of the upper bytes keeps the link.
    now: u16,
}

impl LinkOf {
    fn fits(self, link: u16) -> bool {
        link == NONE || link < self.objects
    }
}

impl LinkRule for LinkOf {
    fn is_valid(&self, stored: u64) -> bool {
        self.fits(stored as u16) && (!self.outside || stored & !0xffff == LINK_PATTERN)
    }
    fn end(&self) -> u64 {
        let link = if self.fits(self.now) { self.now } else { NONE };
        LINK_PATTERN | u64::from(link)
    }
}

/// The hooks of one cache.
pub(crate) struct DebugCache {
    pub(super) name: &'static str,
    pub(super) layout: ObjectLayout,
    pub(super) engine: &'static EngineCore,
    pub(super) depot: Option<StackDepot<'static>>,
    pub(super) quarantine: Quarantine,
    pub(super) faults: AtomicU64,
    /// Allocations that might have been made to fail.
    pub(super) requests: AtomicU64,
}

#[cfg(not(shuttle))]
crate::segment::layout::fields!(DebugCache, "debug": layout, quarantine, faults);

impl fmt::Debug for DebugCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugCache")
            .field("name", &self.name)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

/// The words of a depot at an address.
fn region(at: usize) -> &'static [RealU64] {
    // SAFETY: zeroed metadata of that size, kept as long as the engine and used as atomics only.
    unsafe { std::slice::from_raw_parts(at as *const RealU64, DEPOT_BYTES / size_of::<u64>()) }
}

/// The stacks of an engine; the caller holds the table lock.
fn depot_of(engine: &'static EngineCore) -> Option<StackDepot<'static>> {
    if let Some(depot) = known_depot(engine) {
        return Some(depot);
    }
    let at = engine.meta(DEPOT_BYTES, 64)?;
    let depot = StackDepot::create(region(at));
    engine.depot.store(at, Release);
    depot
}

/// The stacks of an engine, if it keeps any.
pub(crate) fn known_depot(engine: &'static EngineCore) -> Option<StackDepot<'static>> {
    let at = engine.depot.load(Acquire);
    (at != 0).then(|| region(at)).and_then(StackDepot::attach)
}

impl DebugCache {
    /// Hooks in the engine's metadata; `None` if memory is short or no such layout exists.
    pub fn make(
        engine: &'static EngineCore,
        name: &'static str,
        spec: LayoutSpec,
    ) -> Option<&'static Self> {
        let this = Self {
            name,
            layout: spec.layout().ok()?,
            engine,
            depot: None,
            quarantine: Quarantine::new(),
            faults: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        };
        let depot = spec.flags.contains(DebugFlags::STORE_USER);
        let depot = if depot { depot_of(engine) } else { None };
        let at = engine.meta(size_of::<Self>(), align_of::<Self>())? as *mut Self;
        // SAFETY: fresh metadata of the right size and alignment, kept as long as the engine.
        unsafe {
            at.write(Self { depot, ..this });
            Some(&*at)
        }
    }

    pub(super) fn has(&self, flag: DebugFlags) -> bool {
        self.layout.flags().contains(flag)
    }

    pub(super) fn address(&self, slab: &SlabRef, index: u16) -> usize {
        slab.address + usize::from(index) * self.layout.slab_size() + self.layout.object_at()
    }

    pub(super) fn object_address(&self, object: &ObjectRef) -> usize {
        object.slot + self.layout.object_at()
    }

    /// An index as reports show it: the object's address, or 0.
    fn pointer(&self, slab: &SlabRef, index: u16) -> u64 {
        if index < slab.objects {
            self.address(slab, index) as u64
        } else {
            0
        }
    }

    pub(super) fn links(&self, objects: u16, slot: &[u8]) -> LinkOf {
        LinkOf {
            objects,
            outside: self.layout.free_pointer_outside(),
            now: poison::free_pointer(slot, &self.layout) as u16,
        }
    }

    /// The bytes of a slot that no user has, or whose user is giving it back.
    pub(super) fn slot<'s>(&self, object: &ObjectRef) -> &'s mut [u8] {
        // SAFETY: by the rules of this file: the node's lock is held (or the slab is new), and the slot is free or being
        // freed. Hooks make one such slice at a time.
        unsafe { std::slice::from_raw_parts_mut(object.slot as *mut u8, self.layout.slab_size()) }
    }

    /// Writes the report of a finding in a slab.
    pub(super) fn report(
        &self,
        op: &mut Operation,
        slab: &SlabRef,
        finding: Finding,
        write: impl FnOnce(&Reporter<'_>, &mut dyn Write) -> fmt::Result,
    ) {
        let tainted = self.engine.faults.fetch_add(1, Relaxed) > 0;
        self.faults.fetch_add(1, Relaxed);
        op.found(finding.in_slab(slab.address));
        self.write(op, slab, tainted, write);
    }

    fn write(
        &self,
        op: &mut Operation,
        slab: &SlabRef,
        tainted: bool,
        write: impl FnOnce(&Reporter<'_>, &mut dyn Write) -> fmt::Result,
    ) {
        let mut name = [0; 16];
        let track = op.track;
        let (text, frames, _) = op.parts();
        let shown = (!frames.is_empty()).then(|| Trace {
            cpu: track.cpu,
            thread: track.thread,
            name: thread_name(&mut name),
            frames,
        });
        let reporter = Reporter {
            cache: self.name,
            taint: if tainted { TAINTED } else { NOT_TAINTED },
            slab: SlabView {
                descriptor: slab.descriptor as u64,
                memory: slab.address as u64,
                objects: u32::from(slab.objects),
                used: u32::from(slab.inuse),
                free_pointer: self.pointer(slab, slab.head),
                flags: u64::from(slab.node) << 8,
                flag_names: NODE_NAMES.get(slab.node as usize).unwrap_or(&"node=?"),
            },
            depot: self.depot,
            symbols: &Later,
            now_ns: now_ns(),
            trace: shown,
        };
        // Writing to a text does not fail; what does not fit is cut.
        let _ = write(&reporter, text);
    }

    pub(super) fn view<'v>(&'v self, object: &ObjectRef, slot: &'v [u8]) -> ObjectView<'v> {
        ObjectView {
            slot,
            slot_at: object.slot - object.slab,
            layout: &self.layout,
            free_pointer: self.pointer(&object.of, poison::free_pointer(slot, &self.layout) as u16),
            before: &[],
        }
    }

    /// Checks a slot of ours in a state, repairs and reports; gives the number of damaged parts.
    pub(super) fn check(
        &self,
        object: &ObjectRef,
        slot: &mut [u8],
        state: State,
        op: &mut Operation,
    ) -> usize {
        let links = self.links(object.objects, slot);
        let mut first = true;
        check_and_restore(slot, state, &self.layout, &links, |damage, slot| {
            let view = self.view(object, slot);
            let finding = Finding::new(
                object.of.cache,
                object.of.node,
                Fault::Damage(damage.kind()),
            )
            .of_object(object.index, slot, &self.layout)
            .with_damage(damage, Some(&self.layout));
            self.report(op, &object.of, finding, |to, out| {
                to.damage(out, damage, &view, first)
            });
            first = false;
        })
    }

    pub(super) fn not_freed(&self, op: &mut Operation, slab: &SlabRef, pointer: usize) {
        let pointer = pointer as u64;
        self.write(op, slab, true, |to, out| {
            to.fix(out, Fix::NotFreed { pointer })
        });
    }

    pub(super) fn trace_operation(
        &self,
        op: &mut Operation,
        object: &ObjectRef,
        slot: &[u8],
        kind: TrackKind,
    ) {
        if self.has(DebugFlags::TRACE) {
            let view = self.view(object, slot);
            let tainted = self.engine.faults.load(Relaxed) > 0;
            self.write(op, &object.of, tainted, |to, out| {
                to.operation(out, kind, &view)
            });
        }
    }

    /// Makes a slot look handed out, which is what objects out of use look like.
    pub(super) fn retire(&self, object: &ObjectRef, slot: &mut [u8]) {
        poison::on_alloc(slot, &self.layout, self.layout.object_size());
        self.quarantine
            .put(self.engine, self.object_address(object), Held::Out);
    }

    pub(super) fn object_ref(&self, slab: &SlabRef, index: u16) -> ObjectRef {
        let size = self.layout.slab_size();
        ObjectRef {
            slab: slab.address,
            slab_bytes: slab.bytes,
            index,
            objects: slab.objects,
            slot: slab.address + usize::from(index) * size,
            slot_bytes: size,
            of: *slab,
        }
    }

    /// True if all bytes of a range of a slot have a value. The bytes are no user's.
    fn all(object: &ObjectRef, range: core::ops::Range<usize>, value: u8) -> bool {
        range.into_iter().all(|at| {
            // SAFETY: the layout's ranges lie in the slot, which is mapped.
            unsafe { (object.slot as *const u8).add(at).read_volatile() == value }
        })
    }

    pub(super) fn shows(&self, object: &ObjectRef, state: State) -> bool {
        self.has(DebugFlags::RED_ZONE)
            && Self::all(object, 0..self.layout.object_at(), state.red())
            && Self::all(object, self.layout.right(), state.red())
    }
}
