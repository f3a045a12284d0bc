//! Makes /sys/kernel/slab and /proc/slabinfo of any size, the same each time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use collectors::source::tree::MemTree;

/// What to make.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub caches: u32,
    /// Every so manieth cache is merged and has links; 0: none.
    pub merged_every: u32,
    pub nodes: u32,
    pub cpus: u32,
    pub counters: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            caches: 20,
            merged_every: 0,
            nodes: 1,
            cpus: 2,
            counters: false,
        }
    }
}

const SLAB: &str = "sys/kernel/slab";

/// Files and links, and the rows of /proc/slabinfo.
#[derive(Debug, Clone, Default)]
pub struct Fake {
    pub files: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
    pub rows: Vec<String>,
}

/// A linear congruential generator (Knuth's MMIX constants).
pub struct Lcg(pub u64);

impl Lcg {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The figures of one cache, as the kernel would have them.
#[derive(Debug, Clone)]
pub struct Figures {
    pub size: u64,
    pub order: u32,
    /// Per node: slabs, partial slabs, objects in use on those.
    pub nodes: Vec<[u64; 3]>,
}

impl Figures {
    pub fn per_slab(&self) -> u64 {
        (4096 << self.order) / self.size
    }

    fn sum(&self, of: impl Fn(&[u64; 3]) -> u64) -> u64 {
        self.nodes.iter().map(of).sum()
    }

    pub fn slabs(&self) -> u64 {
        self.sum(|n| n[0])
    }

    pub fn objects(&self) -> u64 {
        let each = self.per_slab();
        self.sum(|n| n[0] * each - (n[1] * each - n[2]))
    }

    fn list(&self, of: impl Fn(&[u64; 3]) -> u64) -> String {
        let mut out = self.sum(&of).to_string();
        for (id, node) in self.nodes.iter().enumerate().filter(|(_, n)| of(n) > 0) {
            write!(out, " N{id}={}", of(node)).unwrap();
        }
        out + "\n"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let each = self.per_slab();
        let mut list: Vec<(&str, String)> = [
            ("slab_size", self.size),
            ("object_size", self.size - 8),
            ("objs_per_slab", each),
            ("order", u64::from(self.order)),
            ("align", 8),
            ("aliases", 0),
            ("min_partial", 5),
            ("cpu_partial", 30),
            ("usersize", 0),
            ("remote_node_defrag_ratio", 100),
            ("hwcache_align", 0),
            ("cache_dma", 0),
            ("reclaim_account", 1),
            ("destroy_by_rcu", 0),
            ("poison", 0),
            ("red_zone", 0),
            ("sanity_checks", 0),
            ("store_user", 0),
            ("trace", 0),
        ]
        .into_iter()
        .map(|(name, n)| (name, format!("{n}\n")))
        .collect();
        list.push(("ctor", String::new()));
        list.push(("slabs", self.list(|n| n[0])));
        list.push(("partial", self.list(|n| n[1])));
        list.push(("objects_partial", self.list(|n| n[2])));
        list.push(("total_objects", self.list(|n| n[0] * each)));
        list.push(("objects", self.list(|n| n[0] * each - (n[1] * each - n[2]))));
        list.push(("cpu_slabs", "0\n".into()));
        list.push(("slabs_cpu_partial", "0(0)\n".into()));
        list
    }
}

impl Fake {
    /// A tree with the files of the machine and no cache.
    pub fn machine(shape: Shape) -> Self {
        let mut fake = Self::default();
        let online = |n: u32| format!("0-{}\n", n.max(1) - 1);
        fake.set("proc/sys/kernel/osrelease", "6.12.0-x86_64\n");
        fake.set("proc/meminfo", "MemTotal: 16000000 kB\nSlab: 100000 kB\n");
        fake.set("sys/devices/system/cpu/online", &online(shape.cpus));
        fake.set("sys/devices/system/node/online", &online(shape.nodes));
        fake
    }

    /// A whole machine.
    pub fn new(shape: Shape) -> Self {
        let mut fake = Self::machine(shape);
        let mut random = Lcg(42);
        for i in 0..shape.caches {
            let figures = figures(&mut random, shape);
            let name = format!("cache_{i:05}");
            let merged = shape.merged_every > 0 && i % shape.merged_every == 0;
            let id = if merged {
                // Two caches of one size are merged under ids that differ in flags only.
                let id = format!(":A{i}-{:07}", figures.size);
                fake.link(&name, &id);
                fake.link(&format!("alias_{i:05}"), &id);
                id
            } else {
                name.clone()
            };
            fake.cache(&id, &name, &figures);
            if shape.counters {
                fake.counters(&id, shape.cpus, &mut random);
            }
        }
        fake
    }

    pub fn set(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    /// Sets an attribute of a cache.
    pub fn attribute(&mut self, cache: &str, name: &str, text: &str) {
        self.set(&format!("{SLAB}/{cache}/{name}"), text);
    }

    pub fn link(&mut self, name: &str, target: &str) {
        self.links
            .insert(format!("{SLAB}/{name}"), target.to_owned());
    }

    /// Adds a cache's directory and its row.
    pub fn cache(&mut self, id: &str, name: &str, figures: &Figures) {
        self.directory(id, figures);
        self.row(name, figures);
    }

    pub fn directory(&mut self, id: &str, figures: &Figures) {
        for (attribute, text) in figures.attributes() {
            self.attribute(id, attribute, &text);
        }
    }

    pub fn row(&mut self, name: &str, f: &Figures) {
        let (slabs, each) = (f.slabs(), f.per_slab());
        self.rows.push(format!(
            "{name:<17} {:>6} {:>6} {:>6} {each:>4} {:>4} : tunables    0    0    0 : slabdata {slabs:>6} {slabs:>6}      0",
            f.objects(),
            slabs * each,
            f.size,
            1 << f.order
        ));
    }

    fn counters(&mut self, id: &str, cpus: u32, random: &mut Lcg) {
        for name in [
            "alloc_fastpath",
            "alloc_slowpath",
            "free_fastpath",
            "free_slowpath",
        ] {
            let each: Vec<u64> = (0..cpus).map(|_| random.below(1 << 31)).collect();
            let mut text = each.iter().sum::<u64>().to_string();
            for (cpu, n) in each.iter().enumerate() {
                write!(text, " C{cpu}={n}").unwrap();
            }
            self.attribute(id, name, &(text + "\n"));
        }
    }

    /// The text of /proc/slabinfo.
    pub fn slabinfo(&self) -> String {
        let mut text = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n".to_owned();
        for row in &self.rows {
            text += row;
            text.push('\n');
        }
        text
    }

    /// The tree in memory.
    pub fn mem(&self) -> MemTree {
        let mut tree = MemTree::new("fake");
        for (path, text) in &self.files {
            tree.insert_file(path, text.clone().into_bytes());
        }
        for (path, target) in &self.links {
            tree.insert_link(path, target);
        }
        if !self.rows.is_empty() {
            tree.insert_file("proc/slabinfo", self.slabinfo().into_bytes());
        }
        tree
    }

    /// The tree on disk.
    pub fn write(&self, dir: &Path) {
        let put = |path: &str, text: &str| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (path, text) in &self.files {
            put(path, text);
        }
        for (path, target) in &self.links {
            std::os::unix::fs::symlink(target, dir.join(path)).unwrap();
        }
        if !self.rows.is_empty() {
            put("proc/slabinfo", &self.slabinfo());
        }
    }
}

/// Figures of some cache.
pub fn figures(random: &mut Lcg, shape: Shape) -> Figures {
    let size = 8 * (1 + random.below(255));
    let order = u32::from(size > 512) * 2;
    let each = (4096u64 << order) / size;
    let nodes = (0..shape.nodes)
        .map(|_| {
            let slabs = random.below(200);
            let partial = random.below(slabs + 1);
            [slabs, partial, random.below(partial * each + 1)]
        })
        .collect();
    Figures { size, order, nodes }
}
