//! Published figures by their names: what is known without reading private memory.
//!
//! Source of truth: the names that the segment itself has for its figures. One that it does not
//! name is not known. What it does not do: say what a figure means; its line in the segment does.

use super::read::{PublishedCache, PublishedEngine, Segment};

impl Segment {
    fn value(&self, of_engine: bool, values: &[u64], name: &str) -> Option<u64> {
        let mut names = self.figures.iter().filter(|of| of.of_engine == of_engine);
        let place = names.position(|of| of.name == name)?;
        values.get(place).copied()
    }

    /// A figure of a cache; `None` if the segment does not name it.
    pub fn of_cache(&self, cache: &PublishedCache, name: &str) -> Option<u64> {
        self.value(false, &cache.values, name)
    }

    /// A figure of an engine; `None` if the segment does not name it.
    pub fn of_engine(&self, engine: &PublishedEngine, name: &str) -> Option<u64> {
        self.value(true, &engine.values, name)
    }

    /// The figures of a cache that only rise, with their names: its counters.
    pub fn counters<'s>(
        &'s self,
        cache: &'s PublishedCache,
    ) -> impl Iterator<Item = (&'s str, u64)> {
        let names = self.figures.iter().filter(|of| !of.of_engine);
        let all = names.zip(&cache.values).filter(|(of, _)| of.rises);
        all.map(|(of, value)| (&*of.name, *value))
    }
}
