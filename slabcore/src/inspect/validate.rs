//! Structural checks from outside, with the findings that a validation inside would have.
//!
//! Source of truth: `validate`. Nothing can be locked here, so a finding is told only if what
//! it is about did not change while it was looked at, by the same marks that confirm it
//! inside: a word with its tag, rows with their stamps, and lists and debug caches by the
//! lock that protects them, which counts how often it was taken. What never held still is
//! counted as not checked, and so is what cannot be read. Where the look comes to its limit
//! the validation is cut. Nothing is repaired.

use super::budget::Bounded;
use super::contents::{self, Contents};
use super::dump::quarantined;
use super::image::{self, EngineImage, NodeImage};
use super::lists::List;
use super::marks::{Look, Marks};
use super::shape::Shape;
use super::slabs::{self, ByAddress, SlabImage, Spot};
use super::snapshot::Debug;
use super::{Refusal, StatMap};
use crate::debug::cache::LINK_PATTERN;
use crate::debug::check::{Damage, LinkRule, check_and_restore, check_object, check_slab_padding};
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
/// Slabs of arrays that are copied in one step at most.
const AT_ONCE: usize = 256;

/// Checks all caches of an engine, as far as the look goes.
pub(super) fn engine(
    memory: &Bounded<'_>,
    shape: &Shape,
    stats: &StatMap,
    engine: &EngineImage,
    found: &mut Validation,
) -> Result<(), Refusal> {
    let spots = slabs::collect(memory, shape, engine)?;
    for cache in &engine.caches {
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
        match check.cache(spots.of(cache.id)) {
            Ok(()) => found.caches += 1,
            // A cache that is too large is no reason to leave the others out.
            Err(Refusal::TooMuch) if !memory.is_spent() => {
                found.caches += 1;
                found.cut = true;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

struct Check<'l, 'f> {
    look: Look<'l>,
    /// `None` where it cannot be read: then no bytes are checked.
    debug: Option<Debug>,
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

    fn cache(&mut self, spots: &[Spot]) -> Result<(), Refusal> {
        let look = self.look;
        let (slabs, _held) = slabs::images(look.memory, look.shape, look.engine, spots)?;
        self.slabs(&slabs)?;
        self.lists(&slabs)?;
        if look.cache.policy.is_some() {
            self.arrays(&slabs)?;
        }
        Ok(())
    }

    /// Words, lists and bytes of all slabs.
    fn slabs(&mut self, all: &[SlabImage]) -> Result<(), Refusal> {
        let look = self.look;
        let out = quarantined(look.memory, look.shape, self.debug.as_ref())?;
        let mut rest = all;
        while !rest.is_empty() {
            let (some, after) = rest.split_at(contents::batch(&look, rest).min(rest.len()));
            rest = after;
            let mut waiting = some.to_vec();
            for _ in 0..TRIES {
                let nodes = self.nodes()?;
                let copies = contents::copy(&look, &waiting)?;
                let quiet = steady(&nodes, &self.nodes()?);
                waiting.clear();
                for of in &copies.list {
                    let held = quiet.get(of.slab.node as usize).copied().unwrap_or(false);
                    let sure = of.same && (look.cache.policy.is_some() || (held && out.whole));
                    if sure && !of.bytes.is_empty() {
                        self.found.slabs += 1;
                        self.slab(of, &|at| out.contains(at));
                    } else {
                        waiting.push(of.slab);
                    }
                }
                if waiting.is_empty() || !look.memory.is_live() {
                    break;
                }
            }
            self.found.unchecked += waiting.len() as u64;
            self.found.slabs += waiting.len() as u64;
        }
        Ok(())
    }

    /// The nodes as they are now; nothing if they cannot be read.
    fn nodes(&self) -> Result<Vec<NodeImage>, Refusal> {
        let of = &self.look;
        match image::nodes(of.memory, of.shape, of.engine, of.cache) {
            Err(Refusal::Memory(_)) => Ok(Vec::new()),
            seen => seen,
        }
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
        let Some(layout) = self.debug.as_ref().and_then(|of| of.layout) else {
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
            let in_quarantine = out(of.object(&look, object));
            let damaged = check_object(slot, state, &layout, &rule).is_some();
            if !damaged || in_quarantine {
                continue;
            }
            // What is behind the first damage is seen in a copy in which that is restored.
            let Ok(_held) = look.memory.hold::<u8>(slot.len()) else {
                self.found.cut = true;
                return;
            };
            check_and_restore(&mut slot.to_vec(), state, &layout, &rule, |damage, slot| {
                let finding = self.finding(&of.slab, Fault::Damage(damage.kind()));
                let finding = finding.of_object(object, slot, &layout);
                self.found.tell(finding.with_damage(damage, Some(&layout)));
            });
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
    fn lists(&mut self, slabs: &[SlabImage]) -> Result<(), Refusal> {
        let look = self.look;
        let mut left: Vec<usize> = (0..look.cache.nodes.len()).collect();
        for _ in 0..TRIES {
            let before = self.nodes()?;
            // What is listed now, whether it was there at the first pass or not.
            let now = slabs::again(look.memory, look.shape, look.engine, slabs)?;
            let same = steady(&before, &self.nodes()?);
            let mut moving = Vec::new();
            for node in left {
                let (Some(image), Some(true)) = (before.get(node), same.get(node)) else {
                    moving.push(node);
                    continue;
                };
                let mut list = List::new(look, node as u32, image);
                if list.follow(&now)? {
                    list.found.into_iter().for_each(|of| self.found.tell(of));
                    self.found.more += list.more;
                } else {
                    moving.push(node);
                }
            }
            left = moving;
            if left.is_empty() || !look.memory.is_live() {
                break;
            }
        }
        self.found.moving += u64::from(!left.is_empty());
        Ok(())
    }

    /// Objects in arrays and own lists: each is in one place.
    fn arrays(&mut self, slabs: &[SlabImage]) -> Result<(), Refusal> {
        let mut before = None;
        for _ in 0..TRIES {
            let marks = Marks::gather(&self.look, slabs)?;
            let seen = self.look_at_arrays(&marks, slabs)?;
            match seen {
                // Seen twice, for all that a copy may mix.
                Some(Some(finding)) if before == Some(finding) || !self.look.memory.is_live() => {
                    self.found.tell(finding);
                    return Ok(());
                }
                Some(None) => return Ok(()),
                seen => before = seen.flatten(),
            }
        }
        self.found.moving += 1;
        Ok(())
    }

    /// The first fault of one look; nothing if it was not of one moment.
    fn look_at_arrays(&self, marks: &Marks<'_>, slabs: &[SlabImage]) -> Result<Moment, Refusal> {
        let look = self.look;
        let by_address = ByAddress::new(look.memory, look.shape, slabs)?;
        let mut wanted = vec![false; slabs.len()];
        let mut fault = None;
        for (address, place) in marks.arrays() {
            look.memory.step()?;
            match by_address.find(*address) {
                Some(slab) => wanted.get_mut(slab).into_iter().for_each(|of| *of = true),
                // It may be in a slab that came later.
                None if look.engine.owns(*address, look.shape.page) => return Ok(None),
                None => {
                    let kind = Fault::NotAnObject { place: *place };
                    fault = fault.or(Some(Finding::new(look.cache.id, 0, kind)));
                }
            }
        }
        for (slab, wanted) in slabs.iter().zip(&mut wanted) {
            let holder = marks.holder(&look, slab);
            *wanted |= matches!(holder, Holder::InHand { .. }) && !look.has_owners();
        }
        let mut wanted = slabs.iter().zip(wanted).filter(|of| of.1).map(|of| *of.0);
        let mut rest = Vec::new();
        while fault.is_none() {
            rest.extend(wanted.by_ref().take(AT_ONCE - rest.len()));
            if rest.is_empty() {
                break;
            }
            let after = rest.split_off(contents::batch(&look, &rest).min(rest.len()));
            let copies = contents::copy(&look, &rest)?.list;
            if copies.len() != rest.len() || copies.iter().any(|of| !of.same) {
                return Ok(None);
            }
            fault = copies.iter().find_map(|of| self.in_one_place(of, marks));
            rest = after;
        }
        Ok(marks.still(&look)?.then_some(fault))
    }

    /// The objects of one slab that are in arrays against each other and against its lists.
    fn in_one_place(&self, of: &Contents, marks: &Marks<'_>) -> Option<Finding> {
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
fn own_list(look: &Look<'_>, of: &Contents, marks: &Marks<'_>, holder: Holder) -> Vec<u16> {
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

/// Which nodes' locks were free at two looks and not taken in between.
fn steady(before: &[NodeImage], after: &[NodeImage]) -> Vec<bool> {
    let pairs = before.iter().zip(after);
    pairs.map(|(a, b)| a.held_still_until(b)).collect()
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
