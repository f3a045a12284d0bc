//! The yes-or-no attributes of a cache, each of which may be unknown.

macro_rules! flags {
    ($($variant:ident $name:literal $letter:expr, $doc:literal,)*) => {
        /// A yes-or-no attribute.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Flag {
            $(#[doc = $doc] $variant,)*
        }

        impl Flag {
            /// Every flag, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kernel's attribute name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The letter in slabinfo's `Flg` column, where it has one.
            pub const fn letter(self) -> Option<char> {
                match self { $(Self::$variant => $letter,)* }
            }

            /// One line on what it means.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

// Letters and their order: slabinfo's Flg column.
flags! {
    CacheDma "cache_dma" Some('d'), "Pages come from the DMA zone.",
    HwcacheAlign "hwcache_align" Some('A'), "Objects are aligned to cache lines.",
    Poison "poison" Some('P'), "Free objects are filled with a pattern (slab_debug=P).",
    ReclaimAccount "reclaim_account" Some('a'), "Counted as reclaimable (SReclaimable).",
    RedZone "red_zone" Some('Z'), "Objects are framed by red zones (slab_debug=Z).",
    SanityChecks "sanity_checks" Some('F'), "Consistency checks on every operation (slab_debug=F).",
    StoreUser "store_user" Some('U'), "The last allocation and free of each object are recorded (slab_debug=U).",
    Trace "trace" Some('T'), "Every allocation and free is logged (slab_debug=T).",
    DestroyByRcu "destroy_by_rcu" None, "Slabs are freed after an RCU grace period (SLAB_TYPESAFE_BY_RCU).",
    Failslab "failslab" None, "Allocations fail on purpose (slab_debug=A).",
}

/// The flags of one cache: known or not, set or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    known: u16,
    set: u16,
}

impl Flags {
    /// The flag's value, or `None` when it was not read.
    pub const fn get(self, flag: Flag) -> Option<bool> {
        let bit = 1 << flag as u16;
        if self.known & bit == 0 {
            None
        } else {
            Some(self.set & bit != 0)
        }
    }

    /// Records a flag that was read.
    pub const fn put(&mut self, flag: Flag, value: bool) {
        let bit = 1 << flag as u16;
        self.known |= bit;
        if value {
            self.set |= bit;
        } else {
            self.set &= !bit;
        }
    }

    /// True when the flag is known to be set.
    pub const fn is_set(self, flag: Flag) -> bool {
        matches!(self.get(flag), Some(true))
    }

    /// True when no flag was read.
    pub const fn is_unknown(self) -> bool {
        self.known == 0
    }

    /// True when any of the flags that slab_debug sets is known to be set.
    pub const fn debugging(self) -> bool {
        self.is_set(Flag::Poison)
            || self.is_set(Flag::RedZone)
            || self.is_set(Flag::SanityChecks)
            || self.is_set(Flag::StoreUser)
            || self.is_set(Flag::Trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unread_flag_is_unknown_not_false() {
        let mut flags = Flags::default();
        assert_eq!(flags.get(Flag::Poison), None);
        flags.put(Flag::Poison, false);
        assert_eq!(flags.get(Flag::Poison), Some(false));
        flags.put(Flag::Poison, true);
        assert!(flags.is_set(Flag::Poison) && flags.debugging());
    }
}
