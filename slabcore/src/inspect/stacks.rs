//! A copy of the stacks that an engine's debug caches keep.

use std::sync::atomic::AtomicU64;

use super::Refusal;
use super::budget::Bounded;
use super::image::{AT_ONCE, EngineImage};
use super::memory::u64_at;
use super::shape::Shape;
use crate::debug::depot::{Frames, Handle, StackDepot, USED};

/// Words of all engines' stacks at most: two engines with a full depot.
pub(super) const MOST: usize = 2 << 20;

/// The stacks of one engine, as they were at one time; they only become more.
#[derive(Debug, Default)]
pub struct Stacks {
    words: Vec<AtomicU64>,
}

impl Stacks {
    /// None where nothing is kept, or where it cannot be read; the first of them where there is
    /// no room for all. `room`: words that may still be kept.
    pub(super) fn read(
        memory: &Bounded<'_>,
        shape: &Shape,
        engine: &EngineImage,
        room: &mut usize,
    ) -> Result<Self, Refusal> {
        let mut head = [0; (USED + 1) * 8];
        if engine.depot == 0 || memory.get(engine.depot, &mut head).is_err() {
            return Ok(Self::default());
        }
        let used = usize::try_from(u64_at(&head, USED * 8)).unwrap_or(usize::MAX);
        let used = used.min(shape.depot_bytes / 8).min(*room);
        let _held = memory.hold::<u64>(used)?;
        let mut words = Vec::with_capacity(used);
        let mut bytes = vec![0; AT_ONCE.min(used * 8)];
        while words.len() < used {
            let some = ((used - words.len()) * 8).min(bytes.len());
            let into = bytes.get_mut(..some).unwrap_or_default();
            let at = engine.depot.wrapping_add(words.len() as u64 * 8);
            if memory.get(at, into).is_err() {
                break;
            }
            words.extend(into.chunks(8).map(|word| AtomicU64::new(u64_at(word, 0))));
        }
        *room -= words.len();
        Ok(Self { words })
    }

    /// The frames of a track's stack.
    pub fn get(&self, stack: Handle) -> Option<Frames> {
        StackDepot::attach(&self.words)?.get(stack)
    }
}
