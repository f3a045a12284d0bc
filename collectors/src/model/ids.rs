//! Units and identifiers as types, so that slabs are not added to objects.

use std::fmt;

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The bare number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Sum that stops at the largest value instead of wrapping.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// Difference that stops at 0: a race between two reads never
            /// shows as a huge number.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl From<u64> for $name {
            fn from(value: u64) -> Self {
                Self(value)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self(0), Self::saturating_add)
            }
        }
    };
}

unit!(
    /// A number of bytes.
    Bytes
);
unit!(
    /// A number of objects of one cache.
    Objects
);
unit!(
    /// A number of slabs, each `objs_per_slab` objects unless a fallback order was used.
    Slabs
);

/// Identifies one cache within one snapshot. Never the name: names repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CacheId(pub u32);

/// A NUMA node number as the kernel prints it (`N<id>=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A processor number as the kernel prints it (`C<id>=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_sums_never_wrap() {
        assert_eq!(Slabs(2).saturating_sub(Slabs(4)), Slabs(0));
        let total: Bytes = [Bytes(u64::MAX), Bytes(1)].into_iter().sum();
        assert_eq!(total, Bytes(u64::MAX));
    }
}
