//! Contenders of the engine by name: a policy and the switches that are set.
//!
//! `classic/min-objects=8/max-order=0`. The switches have the kernel's names and meaning, and
//! apply to the caches of a workload, not to the heap of those with many sizes.

use slabcore::{CacheBuilder, DebugFlags, Policy};

/// A policy and what is set of its switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The policy.
    pub policy: Policy,
    /// Objects that a slab should hold.
    pub min_objects: Option<u32>,
    /// Largest page order tried for that.
    pub max_order: Option<u32>,
    /// Partial slabs that a node keeps before an empty one is discarded.
    pub min_partial: Option<u32>,
    /// Free objects that a slot's list of partial slabs may hold.
    pub cpu_partial: Option<u32>,
    /// What is debugged.
    pub debug: Option<DebugFlags>,
    /// The engine is validated without pause, beside.
    pub validate: bool,
}

/// Names of the switches with a number.
pub const SWITCHES: [&str; 4] = ["min-objects", "max-order", "min-partial", "cpu-partial"];

impl Options {
    /// A policy as it is.
    pub const fn of(policy: Policy) -> Self {
        Self {
            policy,
            min_objects: None,
            max_order: None,
            min_partial: None,
            cpu_partial: None,
            debug: None,
            validate: false,
        }
    }

    /// The options of a name; `None` if there is no such policy, or switch, or value.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let mut options = Self::of(Policy::from_name(parts.next()?)?);
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let place = match key {
                "min-objects" => &mut options.min_objects,
                "max-order" => &mut options.max_order,
                "min-partial" => &mut options.min_partial,
                "cpu-partial" => &mut options.cpu_partial,
                "debug" => {
                    options.debug = Some(value.parse().ok()?);
                    continue;
                }
                "validate" if value.is_empty() => {
                    options.validate = true;
                    continue;
                }
                _ => return None,
            };
            *place = Some(value.parse().ok()?);
        }
        Some(options)
    }

    /// Sets them.
    #[must_use]
    pub fn apply<'a>(&self, mut builder: CacheBuilder<'a>) -> CacheBuilder<'a> {
        builder = builder.policy(self.policy);
        if let Some(n) = self.min_objects {
            builder = builder.min_objects(n);
        }
        if let Some(order) = self.max_order {
            builder = builder.max_order(order);
        }
        if let Some(slabs) = self.min_partial {
            builder = builder.min_partial(slabs);
        }
        if let Some(objects) = self.cpu_partial {
            builder = builder.cpu_partial(objects);
        }
        if let Some(flags) = self.debug {
            builder = builder.debug_flags(flags);
        }
        builder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_set() {
        let plain = Options::parse("cpu-partial").unwrap();
        assert_eq!(plain, Options::of(Policy::CpuPartial));
        let set = Options::parse("classic/min-objects=8/max-order=0/min-partial=3").unwrap();
        let expected = Options {
            min_objects: Some(8),
            max_order: Some(0),
            min_partial: Some(3),
            ..Options::of(Policy::Classic)
        };
        assert_eq!(set, expected);
        assert!(Options::parse("hybrid/validate").unwrap().validate);
        let debug = Options::parse("hybrid/debug=FZ").unwrap().debug.unwrap();
        assert!(debug.contains("Z".parse().unwrap()));
        for name in SWITCHES {
            assert!(Options::parse(&format!("hybrid/{name}=1")).is_some());
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for name in [
            "",
            "best",
            "classic/",
            "classic/min-objects",
            "classic/min-objects=-1",
            "classic/order=1",
            "classic/validate=1",
            "classic/debug=?",
        ] {
            assert_eq!(Options::parse(name), None, "{name}");
        }
    }
}
