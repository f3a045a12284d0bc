//! Figures derived from one or two snapshots. Pure functions; each formula once.

pub mod advise;
pub mod check;
pub mod consistency;
pub mod diff;
pub mod explain;
pub mod groups;
pub mod order;
pub mod reconcile;
pub mod sites;
#[cfg(test)]
mod testing;
pub mod totals;
pub mod usage;
pub mod validate;

pub use usage::Usage;
