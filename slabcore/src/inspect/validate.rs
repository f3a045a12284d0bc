//! Structural checks from outside, with the findings that a validation inside would have.
//!
//! Source of truth: `validate`. Nothing can be locked here, so a finding is told only if what
//! it is about did not change while it was looked at, by the same marks that confirm it
//! inside: a word with its tag, rows with their stamps, and lists and debug caches by the
//! lock that protects them, which counts how often it was taken. What never held still is
//! counted as not checked. Nothing is repaired.

use super::contents::{self, Contents};
use super::dump::quarantined;
use super::image::{self, EngineImage, NodeImage};
use super::marks::{Look, Marks};
use super::memory::Memory;
use super::shape::Shape;
use super::slabs::{self, SlabImage};
use super::snapshot::Debug;
use super::{Refusal, StatMap};
use crate::debug::cache::LINK_PATTERN;
use crate::debug::check::{Damage, LinkRule, check_object, check_slab_padding};
use crate::debug::poison;
use crate::dump::{Holder, State};
use crate::finding::{Fault, Finding};
use crate::slab::{NONE, Word};
use crate::validate::{Seen, Validation};
use crate::walk::{Broken, MAX_OBJECTS, walk};

/// The first fault of one look, if the look was of one moment.
type Moment = Option<Option<Finding>>;

/// Times to look at what keeps changing.
const TRIES: usize = 8;

/// Checks all caches of an engine.
pub(super) fn engine(
    memory: &dyn Memory,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    found: &mut Validation,
) -> Result<(), Refusal> {
    let slabs = slabs::by_cache(engine, slabs::collect(memory, shape, engine)?);
    for (cache, slabs) in engine.caches.iter().zip(slabs) {
        let look = Look {
            memory,
            shape,
            engine,
            cache,
            fast: stats.fast(),
        };
        let mut check = Check {
            debug: Debug::read(memory, shape, cache),
            look,
            found,
        };
        check.slabs(&slabs);
        check.lists(&slabs);
        if cache.policy.is_some() {
            check.arrays(&slabs);
        }
    }
    Ok(())
}

struct Check<'l, 'f> {
    look: Look<'l>,
    debug: Debug,
    found: &'f mut Validation,
}

/// A free list's fault.
fn fault_of(word: Word, broken: Broken) -> Fault {
    match broken {
        Broken::Counts => Fault::Counts {
            inuse: word.inuse(),
            objects: word.objects(),
        },
        Broken::Link { object, link } => Fault::BadLink { object, link },
        Broken::Cycle { object } => Fault::Cycle { object },
        Broken::Length { found } => Fault::FreeCount {
            found,
            counted: word.free(),
        },
    }
}

impl Check<'_, '_> {
    fn finding(&self, slab: &SlabImage, fault: Fault) -> Finding {
        Finding::new(self.look.cache.id, slab.node, fault).in_slab(slab.address as usize)
    }

    /// Words, lists and bytes of all slabs.
    fn slabs(&mut self, all: &[SlabImage]) {
        let out = quarantined(self.look.memory, self.look.shape, &self.debug);
        let mut rest = all;
        while !rest.is_empty() {
            let (some, after) = rest.split_at(contents::batch(&self.look, rest).min(rest.len()));
            rest = after;
            let mut waiting = some.to_vec();
            for _ in 0..TRIES {
                let nodes = self.nodes();
                let copies = contents::copy(&self.look, &waiting);
                let quiet = steady(&nodes, &self.nodes());
                waiting.clear();
                for of in &copies {
                    let held = quiet.get(of.slab.node as usize).copied().unwrap_or(false);
                    let sure = of.same && (self.look.cache.policy.is_some() || held);
                    if sure && !of.bytes.is_empty() {
                        self.found.slabs += 1;
                        self.slab(of, &|at| out.contains(&at));
                    } else {
                        waiting.push(of.slab);
                    }
                }
                if waiting.is_empty() || !self.look.memory.is_live() {
                    break;
                }
            }
            self.found.unchecked += waiting.len() as u64;
            self.found.slabs += waiting.len() as u64;
        }
    }

    /// The nodes as they are now; nothing if they cannot be read.
    fn nodes(&self) -> Vec<NodeImage> {
        let of = &self.look;
        image::nodes(of.memory, of.shape, of.engine, of.cache).unwrap_or_default()
    }

    /// A slab that held still.
    fn slab(&mut self, of: &Contents, out: &dyn Fn(u64) -> bool) {
        let look = self.look;
        let (word, slab) = (of.word, &of.slab);
        let fits = (slab.bytes(look.shape) / u64::from(look.cache.size)).min(MAX_OBJECTS as u64);
        if u64::from(word.objects()) != fits {
            let fault = Fault::Counts {
                inuse: word.inuse(),
                objects: word.objects(),
            };
            return self.found.tell(self.finding(slab, fault));
        }
        let mut seen = Seen::new();
        let at_rest = look.cache.policy.is_some()
            || (!word.frozen() && (slab.on_node == 1 || word.inuse() != 0));
        if !at_rest {
            return;
        }
        if let Err(broken) = walk(&of.links(&look), word, &mut seen) {
            self.found.tell(self.finding(slab, fault_of(word, broken)));
        } else if look.cache.policy.is_some()
            && (word.frozen() || word.head() == NONE)
            && slab.on_node != 0
        {
            self.found.tell(self.finding(slab, Fault::OnNodeFlag));
        } else if look.cache.policy.is_none() {
            self.bytes(of, &seen, out);
        }
    }

    /// The bytes of a debug cache's slab, whose list is sound.
    fn bytes(&mut self, of: &Contents, free: &Seen, out: &dyn Fn(u64) -> bool) {
        let Some(layout) = self.debug.layout else {
            return;
        };
        let look = self.look;
        for object in 0..of.word.objects() {
            let Some(slot) = of.slot(&look, object) else {
                return;
            };
            let state = if free.has(object) {
                poison::State::Free
            } else {
                poison::State::Live
            };
            let rule = OutsideLink {
                objects: of.word.objects(),
                outside: layout.free_pointer_outside(),
            };
            let at = of.slab.address + u64::from(object) * u64::from(look.cache.size);
            let in_quarantine = out(at + u64::from(look.cache.object_offset));
            let damage = check_object(slot, state, &layout, &rule).filter(|_| !in_quarantine);
            if let Some(damage) = damage {
                let finding = self.finding(&of.slab, Fault::Damage(damage.kind()));
                let finding = finding.of_object(object, slot, &layout);
                self.found.tell(finding.with_damage(&damage, Some(&layout)));
            }
        }
        let padding = check_slab_padding(&of.bytes, of.word.objects().into(), &layout);
        if let Some(damage) = padding {
            self.tell_padding(of, &damage);
        }
    }

    fn tell_padding(&mut self, of: &Contents, damage: &Damage) {
        let finding = self.finding(&of.slab, Fault::Damage(damage.kind()));
        self.found.tell(finding.with_damage(damage, None));
    }

    /// The nodes' lists of partial slabs.
    fn lists(&mut self, slabs: &[SlabImage]) {
        let mut found = Vec::new();
        let mut left: Vec<usize> = (0..self.look.cache.nodes.len()).collect();
        for _ in 0..TRIES {
            let before = self.nodes();
            // What is listed now, whether it was there at the first pass or not.
            let now = slabs::again(self.look.memory, self.look.shape, self.look.engine, slabs);
            let same = steady(&before, &self.nodes());
            left.retain(|node| {
                let (Some(image), Some(true)) = (before.get(*node), same.get(*node)) else {
                    return true;
                };
                let known = self.list(*node as u32, image, &now, &mut found);
                !known
            });
            if left.is_empty() || !self.look.memory.is_live() {
                break;
            }
        }
        self.found.moving += u64::from(!left.is_empty());
        for finding in found {
            self.found.tell(finding);
        }
    }

    /// One list that held still; false if a slab of it came later than the slabs are known.
    fn list(
        &self,
        node: u32,
        image: &NodeImage,
        slabs: &[SlabImage],
        found: &mut Vec<Finding>,
    ) -> bool {
        let look = self.look;
        let id = look.cache.id;
        let (mut at, mut before, mut n) = (image.head, None::<&SlabImage>, 0);
        let broken = |of: Option<&SlabImage>| {
            let finding = Finding::new(id, node, Fault::ListBroken);
            of.map_or(finding, |of| finding.in_slab(of.address as usize))
        };
        while at != 0 {
            if n > image.nr_partial || look.engine.range_of(at).is_none() {
                found.push(broken(before));
                return true;
            }
            let Some(slab) = slabs::find(slabs, at) else {
                // A new slab, or one of another cache.
                let one = [SlabImage {
                    page: at,
                    order: 0,
                    cache: 0,
                    raw: 0,
                    owner: 0,
                    own: 0,
                    own_free: 0,
                    prev: 0,
                    next: 0,
                    node,
                    place: 0,
                    queued: false,
                    on_node: 0,
                    address: 0,
                }];
                let now = slabs::again(look.memory, look.shape, look.engine, &one);
                let foreign = now.first().filter(|of| of.cache != 0 && of.cache != id + 1);
                if let Some(of) = foreign {
                    let finding = Finding::new(id, node, Fault::ForeignSlab);
                    found.push(finding.in_slab(of.address as usize));
                }
                return foreign.is_some();
            };
            let mut tell = |fault| {
                let finding = Finding::new(id, node, fault);
                found.push(finding.in_slab(slab.address as usize));
            };
            if slab.prev != before.map_or(0, |of| of.page) {
                found.push(broken(Some(slab)));
                return true;
            }
            if slab.on_node != 1 {
                tell(Fault::OnNodeFlag);
            }
            if slab.cache != id + 1 || slab.node != node {
                tell(Fault::ForeignSlab);
                return true;
            }
            if slab.word(look.shape).frozen() {
                tell(Fault::ListedFrozen);
            }
            n += 1;
            before = Some(slab);
            at = slab.next;
        }
        if image.tail != before.map_or(0, |of| of.page) {
            found.push(broken(before));
        }
        if n != image.nr_partial {
            let counted = image.nr_partial;
            let fault = Fault::PartialCount { found: n, counted };
            found.push(Finding::new(id, node, fault));
        }
        true
    }

    /// Objects in arrays and own lists: each is in one place.
    fn arrays(&mut self, slabs: &[SlabImage]) {
        let mut before = None;
        for _ in 0..TRIES {
            let marks = Marks::gather(&self.look, slabs);
            let seen = self.look_at_arrays(&marks, slabs);
            match seen {
                // Seen twice, for all that a copy may mix.
                Some(Some(finding)) if before == Some(finding) || !self.look.memory.is_live() => {
                    return self.found.tell(finding);
                }
                Some(None) => return,
                seen => before = seen.flatten(),
            }
        }
        self.found.moving += 1;
    }

    /// The first fault of one look; nothing if it was not of one moment.
    fn look_at_arrays(&self, marks: &Marks, slabs: &[SlabImage]) -> Moment {
        let look = self.look;
        let mut wanted: Vec<SlabImage> = Vec::new();
        let mut fault = None;
        for (address, place) in marks.arrays() {
            match slab_at(look.shape, slabs, *address) {
                Some(slab) if wanted.last().is_some_and(|last| last.page == slab.page) => {}
                Some(slab) => wanted.push(*slab),
                // It may be in a slab that came later.
                None if look.engine.owns(*address, look.shape.page) => return None,
                None => {
                    let kind = Fault::NotAnObject { place: *place };
                    fault = fault.or(Some(Finding::new(look.cache.id, 0, kind)));
                }
            }
        }
        let held = slabs.iter().filter(|slab| {
            matches!(marks.holder(&look, slab), Holder::InHand { .. }) && !look.has_owners()
        });
        wanted.extend(held.copied());
        wanted.sort_unstable_by_key(|slab| slab.page);
        wanted.dedup_by_key(|slab| slab.page);
        let mut rest = &*wanted;
        while !rest.is_empty() && fault.is_none() {
            let (some, after) = rest.split_at(contents::batch(&look, rest).min(rest.len()));
            rest = after;
            let copies = contents::copy(&look, some);
            if copies.len() != some.len() || copies.iter().any(|of| !of.same) {
                return None;
            }
            fault = copies.iter().find_map(|of| self.in_one_place(of, marks));
        }
        marks.still(&look).then_some(fault)
    }

    /// The objects of one slab that are in arrays against each other and against its lists.
    fn in_one_place(&self, of: &Contents, marks: &Marks) -> Option<Finding> {
        let look = self.look;
        let mut listed = Seen::new();
        // A damaged list is told by the checks of slabs.
        let whole = walk(&of.links(&look), of.word, &mut listed).is_ok();
        let twice = |object, first, second| {
            let kind = Fault::FreedTwice {
                object,
                first,
                second,
            };
            self.finding(&of.slab, kind)
        };
        let mut own = Seen::new();
        let holder = marks.holder(&look, &of.slab);
        let slot = match holder {
            Holder::InHand { slot } | Holder::Partial { slot } | Holder::Full { slot } => slot,
            Holder::Nobody => 0,
        };
        for object in own_list(&look, of, marks, holder) {
            let place = State::Own { slot };
            if usize::from(object) < MAX_OBJECTS && own.mark(object) {
                return Some(twice(object, place, place));
            }
            if whole && usize::from(object) < MAX_OBJECTS && listed.has(object) {
                return Some(twice(object, State::Free, place));
            }
        }
        let start = of.slab.address;
        let end = start.saturating_add(of.slab.bytes(look.shape));
        let (mut arrays, mut before) = (Seen::new(), State::Unknown);
        for (address, place) in marks.arrays_in(start..end) {
            let offset = address - start;
            let object = offset / u64::from(look.cache.size);
            if !offset.is_multiple_of(look.cache.size.into()) || object >= of.word.objects().into()
            {
                let kind = Fault::NotAnObject { place: *place };
                return Some(Finding::new(look.cache.id, 0, kind));
            }
            let object = object as u16;
            if arrays.mark(object) {
                return Some(twice(object, before, *place));
            }
            if whole && listed.has(object) {
                return Some(twice(object, State::Free, *place));
            }
            if own.has(object) {
                return Some(twice(object, State::Own { slot }, *place));
            }
            before = *place;
        }
        None
    }
}

/// The own list of a slab's holder, as far as it goes.
fn own_list(look: &Look<'_>, of: &Contents, marks: &Marks, holder: Holder) -> Vec<u16> {
    use crate::slab::Links as _;
    let objects = of.word.objects();
    match holder {
        Holder::InHand { slot } if look.has_cpu_slab() => {
            let links = of.links(look);
            let next = |object: &u16| Some(links.get(*object));
            let all = std::iter::successors(Some(marks.head(slot)), next);
            all.take_while(|object| *object < objects)
                .take(objects.into())
                .collect()
        }
        Holder::Nobody => Vec::new(),
        _ => of.own().filter(|object| *object < objects).collect(),
    }
}

/// The slab that an address is in.
fn slab_at<'s>(shape: &Shape, slabs: &'s [SlabImage], address: u64) -> Option<&'s SlabImage> {
    // Addresses rise with pages within a range; ranges may lie in any order.
    let within = |of: &&SlabImage| {
        (of.address..of.address.saturating_add(of.bytes(shape))).contains(&address)
    };
    let after = slabs.partition_point(|of| of.address <= address);
    let near = after.checked_sub(1).and_then(|at| slabs.get(at));
    near.filter(within).or_else(|| slabs.iter().find(within))
}

/// Which nodes' locks were free at two looks and not taken in between.
fn steady(before: &[NodeImage], after: &[NodeImage]) -> Vec<bool> {
    let pairs = before.iter().zip(after);
    pairs
        .map(|(a, b)| a.is_free && b.is_free && a.lock[0] == b.lock[0])
        .collect()
}

/// Which words hold a good link, in a slot that is only looked at.
struct OutsideLink {
    objects: u16,
    outside: bool,
}

impl LinkRule for OutsideLink {
    fn is_valid(&self, stored: u64) -> bool {
        let link = stored as u16;
        let fits = link == NONE || link < self.objects;
        fits && (!self.outside || stored & !0xffff == LINK_PATTERN)
    }
    fn end(&self) -> u64 {
        LINK_PATTERN | u64::from(NONE)
    }
}
