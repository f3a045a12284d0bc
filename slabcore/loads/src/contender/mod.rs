//! The allocators that take part, by name.

pub mod engine;
pub mod malloc;
pub mod options;

use crate::Contender;
use options::Options;

/// What a caller wants to do with whichever contender a name stands for.
pub trait Visit {
    /// What it gives.
    type Out;
    /// Does it.
    fn visit<C: Contender>(self, contender: &C) -> Self::Out;
}

/// Names of the contenders that are not the engine.
pub const PEERS: &[&str] = if cfg!(feature = "peers") {
    &["malloc", "mimalloc", "jemalloc", "snmalloc"]
} else {
    &["malloc"]
};

/// Does something with the contender of a name; `None` if there is none, or if
/// it could not be made. `malloc` is whatever the process's malloc is.
pub fn visit<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
    if let Some(options) = Options::parse(name) {
        return Some(visitor.visit(&engine::Slabcore::with(options)?));
    }
    match name {
        "malloc" => Some(visitor.visit(&malloc::Foreign::<malloc::Libc>::new())),
        #[cfg(feature = "peers")]
        "mimalloc" => Some(visitor.visit(&malloc::Foreign::<malloc::Mimalloc>::new())),
        #[cfg(feature = "peers")]
        "jemalloc" => Some(visitor.visit(&malloc::Foreign::<malloc::Jemalloc>::new())),
        #[cfg(feature = "peers")]
        "snmalloc" => Some(visitor.visit(&malloc::Foreign::<malloc::Snmalloc>::new())),
        _ => None,
    }
}
