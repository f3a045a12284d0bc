//! One table of every figure a cache can have.
//!
//! The names are the kernel's own attribute names where one exists
//! (`/sys/kernel/slab/<cache>/`, mm/slub.c); they are the JSON field names too.

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Objects.
    Objects,
    /// Slabs.
    Slabs,
    /// A plain number (an order, a count of names, a limit).
    Count,
    /// A ratio shown in percent.
    Percent,
    /// A time in seconds.
    Seconds,
    /// Not a number.
    Text,
}

macro_rules! quantities {
    ($($variant:ident $name:literal $unit:ident $doc:literal,)*) => {
        /// A figure of one cache, as read from a source.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Quantity {
            $(#[doc = $doc] $variant,)*
        }

        impl Quantity {
            /// Every quantity, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The kernel's attribute name, or ours where there is none.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the figure counts.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit,)* }
            }

            /// One line on what the figure means.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

quantities! {
    ObjectSize "object_size" Bytes "Payload bytes of one object.",
    SlabSize "slab_size" Bytes "Bytes of one object's slot, metadata and alignment included.",
    ObjsPerSlab "objs_per_slab" Objects "Objects in a slab of the preferred order.",
    Order "order" Count "Page order of a slab.",
    PagesPerSlab "pages_per_slab" Count "Pages in a slab of the preferred order.",
    Align "align" Bytes "Alignment of an object.",
    Usersize "usersize" Bytes "Bytes of an object that may be copied to and from user space.",
    MinPartial "min_partial" Slabs "Partial slabs a node keeps before empty ones are discarded.",
    CpuPartial "cpu_partial" Objects "Free objects that per-CPU partial lists aim to hold.",
    SheafCapacity "sheaf_capacity" Objects "Objects in a full per-CPU sheaf; 0 without sheaves.",
    RemoteNodeDefragRatio "remote_node_defrag_ratio" Count "Willingness to take slabs from other nodes, 0 to 100.",
    Objects "objects" Objects "Objects in use, including free ones parked in CPU slabs, CPU partial lists, sheaves and barns, unless the source sees those.",
    TotalObjects "total_objects" Objects "Objects that the slabs have room for.",
    ObjectsPartial "objects_partial" Objects "Objects in use on the nodes' partial slabs.",
    Slabs "slabs" Slabs "Slabs the cache holds.",
    Partial "partial" Slabs "Slabs on the nodes' partial lists.",
    CpuSlabs "cpu_slabs" Slabs "Slabs in use by CPUs, their partial lists included on most kernels.",
    SlabsCpuPartial "slabs_cpu_partial" Slabs "Slabs on per-CPU partial lists.",
    ObjectsCpuPartial "objects_cpu_partial" Objects "Free objects on per-CPU partial lists; an estimate since Linux 5.16.",
    ActiveSlabs "active_slabs" Slabs "Slabs with at least one object in use (the SLAB allocator only).",
    AliasCount "alias_count" Count "Names merged into this cache beyond the first (attribute `aliases`).",
    Parked "parked" Objects "Free objects in CPU slabs, CPU partial lists, sheaves and barns, where the source sees them; not in `objects` then.",
    ReportedUsed "reported_used" Bytes "Bytes in use, where a source prints only sizes.",
    ReportedTotal "reported_total" Bytes "Bytes held, where a source prints only sizes.",
}

/// A set of quantities, for asking a source and for saying what was given.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct QuantitySet(u32);

const _: () = assert!(Quantity::COUNT <= 32, "QuantitySet has 32 bits");

impl QuantitySet {
    /// No quantity.
    pub const EMPTY: Self = Self(0);

    /// Every quantity.
    pub const ALL: Self = Self(u32::MAX >> (32 - Quantity::COUNT));

    /// The set of these.
    pub const fn of(list: &[Quantity]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < list.len() {
            bits |= 1 << list[i] as u32;
            i += 1;
        }
        Self(bits)
    }

    /// Whether `q` is in the set.
    pub const fn contains(self, q: Quantity) -> bool {
        self.0 & (1 << q as u32) != 0
    }

    /// Adds `q`.
    pub const fn insert(&mut self, q: Quantity) {
        self.0 |= 1 << q as u32;
    }

    /// Removes `q`.
    pub const fn remove(&mut self, q: Quantity) {
        self.0 &= !(1 << q as u32);
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members in table order.
    pub fn iter(self) -> impl Iterator<Item = Quantity> {
        Quantity::ALL
            .iter()
            .copied()
            .filter(move |q| self.contains(*q))
    }
}

impl std::fmt::Debug for QuantitySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Quantity::name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let mut set = QuantitySet::of(&[Quantity::ObjectSize, Quantity::ReportedTotal]);
        assert!(set.contains(Quantity::ReportedTotal) && !set.contains(Quantity::Slabs));
        set.insert(Quantity::Slabs);
        set.remove(Quantity::ObjectSize);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Quantity::Slabs, Quantity::ReportedTotal]
        );
        assert_eq!(QuantitySet::ALL.iter().count(), Quantity::COUNT);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Quantity::ALL.iter().map(|q| q.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Quantity::COUNT);
    }
}
