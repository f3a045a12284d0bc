//! Call sites of one cache, which are read on demand only: opening their file
//! walks every object of the cache.

use std::time::Duration;

use collectors::model::{Cache, CallSite};

use super::{Key, Moment};

/// What a source that was asked for the call sites of a cache gave.
#[derive(Debug, Clone, Default)]
pub struct SitesRead {
    /// The directory or name that was asked for.
    pub id: String,
    /// The records; `None` where the cache has none.
    pub sites: Option<Box<Vec<CallSite>>>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

/// The call sites of a cache at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    /// Which cache.
    pub key: Key,
    /// The cache with its records.
    pub cache: Cache,
    /// What could not be read.
    pub warnings: Vec<String>,
    /// When it was read, from the start of the program.
    pub at: Duration,
    /// How long the whole sample took.
    pub took: Duration,
}

impl Look {
    /// What was read, where the sample has the cache.
    pub fn new(read: SitesRead, moment: &Moment) -> Option<Self> {
        let cache = moment.snapshot.named(&read.id).next()?;
        let place = usize::try_from(cache.id.0).ok()?;
        let mut cache = cache.clone();
        cache.sites = read.sites;
        Some(Self {
            key: *moment.keys.get(place)?,
            cache,
            warnings: read.warnings,
            at: moment.at,
            took: moment.took,
        })
    }
}

/// The last look, and the one of the mark.
#[derive(Debug, Default)]
pub struct Sites {
    /// The cache that was asked for since the screen was opened.
    pub asked: Option<Key>,
    /// The last look.
    pub now: Option<Look>,
    /// The last look when the mark was set.
    pub marked: Option<Look>,
}

impl Sites {
    /// The last look at a cache.
    pub fn of(&self, key: Key) -> Option<&Look> {
        self.now.as_ref().filter(|look| look.key == key)
    }

    /// What the records of a cache are compared with.
    pub fn before(&self, key: Key) -> Option<&Look> {
        let marked = self.marked.as_ref().filter(|look| look.key == key)?;
        let now = self.of(key)?;
        let both = marked.cache.sites.is_some() && now.cache.sites.is_some();
        (both && marked.at < now.at).then_some(marked)
    }
}
