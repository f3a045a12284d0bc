//! A copy of the stacks that an engine's debug caches keep.

use std::sync::atomic::AtomicU64;

use super::image::EngineImage;
use super::memory::{Memory, u64_at};
use super::shape::Shape;
use crate::debug::depot::{Frames, Handle, StackDepot, USED};

/// The stacks of one engine, as they were at one time; they only become more.
#[derive(Debug, Default)]
pub struct Stacks {
    words: Vec<AtomicU64>,
}

impl Stacks {
    /// None where nothing is kept, or where it cannot be read.
    pub(super) fn read(memory: &dyn Memory, shape: &Shape, engine: &EngineImage) -> Self {
        let mut head = [0; (USED + 1) * 8];
        if engine.depot == 0 || memory.get(engine.depot, &mut head).is_err() {
            return Self::default();
        }
        let used = usize::try_from(u64_at(&head, USED * 8)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; used.min(shape.depot_bytes / 8) * 8];
        if memory.get(engine.depot, &mut bytes).is_err() {
            return Self::default();
        }
        let words = bytes.chunks(8).map(|word| AtomicU64::new(u64_at(word, 0)));
        Self {
            words: words.collect(),
        }
    }

    /// The frames of a track's stack.
    pub fn get(&self, stack: Handle) -> Option<Frames> {
        StackDepot::attach(&self.words)?.get(stack)
    }
}
