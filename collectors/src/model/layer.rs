//! Which text or memory a figure came from.

macro_rules! layers {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// One kind of evidence inside a source.
        ///
        /// A capture often holds several; for each figure the first layer in
        /// this order that has it wins, and the cache remembers which it was.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Layer {
            $(#[doc = $doc] $variant,)*
        }

        impl Layer {
            /// Every layer, best first.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Short name for people and machines.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line on what it is.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

layers! {
    Bpf "bpf" "The kernel's own structures, read by BPF programs.",
    Sysfs "sysfs" "Attribute files of /sys/kernel/slab.",
    Slabinfo "slabinfo" "/proc/slabinfo of any version.",
    Memcg "memcg-slabinfo" "A cgroup v1 memory.kmem.slabinfo file.",
    SlabinfoTool "slabinfo-tool" "Output of the kernel's slabinfo tool.",
    Slabtop "slabtop" "Output of slabtop -o.",
    CrashKmem "crash-kmem" "Output of crash's kmem -s.",
    OomTable "oom-table" "The kernel log's table of unreclaimable slabs after an OOM kill.",
    AliasListing "alias-listing" "A listing of /sys/kernel/slab with its symbolic links.",
    Engine "engine" "The built-in engine, which looks at itself.",
    Derived "derived" "Computed from other figures of the same cache.",
}

/// A set of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerSet(u16);

impl LayerSet {
    /// Adds a layer.
    pub const fn insert(&mut self, layer: Layer) {
        self.0 |= 1 << layer as u16;
    }

    /// Whether `layer` is in the set.
    pub const fn contains(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u16) != 0
    }

    /// The members, best first.
    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL
            .iter()
            .copied()
            .filter(move |l| self.contains(*l))
    }
}
