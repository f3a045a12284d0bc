//! Careful readings of the saved slabinfo texts, made by hand and by script
//! from the texts alone, to hold the program to.

/// What is true of a saved slabinfo.
pub struct Answer {
    pub file: &'static str,
    pub caches: usize,
    pub empty: usize,
    /// Memory of all caches in KiB, by slabs.
    pub total: u64,
    pub top: &'static [(&'static str, u64)],
}

/// The readings.
pub const ANSWERS: [Answer; 12] = [
    Answer {
        file: "slabinfo/2.4-smp-1.1.txt",
        caches: 69,
        empty: 18,
        total: 45_656,
        top: &[
            ("buffer_head", 21_192),
            ("inode_cache", 14_208),
            ("dentry_cache", 5820),
        ],
    },
    Answer {
        file: "slabinfo/2.4-up-statistics.txt",
        caches: 59,
        empty: 25,
        total: 1288,
        top: &[("buffer_head", 768), ("size-128", 64), ("filp", 52)],
    },
    Answer {
        file: "slabinfo/openharmony.txt",
        caches: 3,
        empty: 0,
        total: 3164,
        top: &[("slab-[24]", 1984), ("slab-[16]", 864), ("slab-[32]", 316)],
    },
    Answer {
        file: "slabinfo/4.4-arm-slab.txt",
        caches: 84,
        empty: 37,
        total: 13_276,
        top: &[("inode_cache", 2924), ("dentry", 1736), ("jffs2_i", 1172)],
    },
    Answer {
        file: "slabinfo/2.6-up-slab.txt",
        caches: 126,
        empty: 62,
        total: 2428,
        top: &[
            ("inode_cache", 388),
            ("nfs_inode_cache", 316),
            ("size-4096", 292),
        ],
    },
    Answer {
        file: "slabinfo/debug-names-with-colons.txt",
        caches: 300,
        empty: 140,
        total: 668_096,
        top: &[
            ("ext4_inode_cache", 117_920),
            ("buffer_head", 111_168),
            ("dentry", 87_264),
        ],
    },
    Answer {
        file: "slabinfo/4.18-coreos.txt",
        caches: 142,
        empty: 34,
        total: 196_400,
        top: &[
            ("xfs_inode", 30_528),
            ("kmalloc-1024", 23_056),
            ("dentry", 21_744),
        ],
    },
    Answer {
        file: "slabinfo/fedora-gfs2-debug.txt",
        caches: 136,
        empty: 38,
        total: 1_338_844,
        top: &[
            ("xfs_inode", 522_176),
            ("dentry", 256_936),
            ("buffer_head", 98_532),
        ],
    },
    Answer {
        file: "slabinfo/two-nodes-128g.txt",
        caches: 129,
        empty: 50,
        total: 1_452_008,
        top: &[
            ("buffer_head", 652_868),
            ("xfs_inode", 338_528),
            ("dentry", 102_944),
        ],
    },
    Answer {
        file: "slabinfo/5.4-openstack.txt",
        caches: 223,
        empty: 99,
        total: 920_532,
        top: &[
            ("ext4_inode_cache", 189_792),
            ("buffer_head", 88_404),
            ("dentry", 84_856),
        ],
    },
    Answer {
        file: "slabinfo/three-rows.txt",
        caches: 3,
        empty: 0,
        total: 104,
        top: &[("TCP", 64), ("kmalloc-1k", 32), ("kmalloc-192", 8)],
    },
    Answer {
        file: "slabinfo/crlf-truncated.txt",
        caches: 58,
        empty: 30,
        total: 9752,
        top: &[("inode_cache", 2924), ("dentry", 1736), ("jffs2_i", 1172)],
    },
];
