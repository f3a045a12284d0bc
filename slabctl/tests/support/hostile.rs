//! A process that lies about its engine, to be looked into from outside by the tests.
//!
//! It is the test's own program, started again with the variable [`KIND`]. It makes a true engine
//! with a true segment, changes words of both as the kind says, by the names that the segment has
//! for them, says `ready`, and goes on until its input ends. What it does not do: use the engine
//! after that.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};

use slabcore::inspect;
use slabcore::segment::format;
use slabcore::{CacheBuilder, Engine, EngineConfig};

/// Names the variable.
pub const KIND: &str = "SLABCTL_TEST_HOSTILE";

/// Names the variable with the file of a segment, for a process that has only that.
pub const SEGMENT: &str = "SLABCTL_TEST_SEGMENT";

/// A name that would command a terminal.
pub const NAME: &str = "ev\x1b]0;title\x07il\u{9b}31m";

/// The process's own memory and segment.
struct Own {
    memory: File,
    segment: File,
    layout: BTreeMap<String, u64>,
}

impl Own {
    fn at(&self, name: &str) -> u64 {
        self.layout[name]
    }

    fn get(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn put(&self, at: u64, value: u64) {
        self.memory.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }

    fn put_u32(&self, at: u64, value: u32) {
        self.memory.write_all_at(&value.to_ne_bytes(), at).unwrap();
    }

    fn engine(&self) -> u64 {
        self.get(self.at("root.engines"))
    }

    fn range(&self) -> u64 {
        self.engine() + self.at("engine.pages") + self.at("pages.range")
    }

    /// A cache of the engine's table.
    fn cache(&self, id: u64) -> u64 {
        self.get(self.engine() + self.at("engine.table")) + id * self.at("cache.sizeof")
    }

    /// Replaces a number of the segment's layout.
    fn rename(&self, name: &str, value: u64) {
        let mut bytes = vec![0; format::BYTES];
        self.segment.read_exact_at(&mut bytes, 0).unwrap();
        let mut name = name.as_bytes().to_vec();
        name.push(0);
        let found =
            { bytes.chunks(8).enumerate() }.position(|(n, _)| bytes[n * 8..].starts_with(&name));
        let at = found.unwrap() * 8 + format::pair::NUMBER;
        self.segment
            .write_all_at(&value.to_ne_bytes(), at as u64)
            .unwrap();
    }
}

/// Memory that is never given back; its address.
fn kept(bytes: Vec<u8>) -> u64 {
    let bytes: &'static mut [u8] = bytes.leak();
    bytes.as_ptr() as u64
}

/// Descriptors of so many slabs of the first cache, each the next of its own list.
#[allow(
    clippy::cast_possible_truncation,
    reason = "offsets within a descriptor"
)]
fn slabs(own: &Own, pages: u32) {
    let each = own.at("desc.sizeof") as usize;
    let mut descs = vec![0u8; (pages as usize + 1) * each];
    let mut map = vec![0u8; (pages as usize + 1) * 4];
    // The order beside the state is 0.
    let run = own.at("run.slab") as u32;
    let word = 1u64 << own.at("word.inuse") | 2u64 << own.at("word.objects");
    for page in 1..=pages {
        let at = page as usize * each;
        let mut put = |name: &str, bytes: &[u8]| {
            let at = at + own.at(name) as usize;
            descs[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put("desc.word", &word.to_ne_bytes());
        put("desc.run", &run.to_ne_bytes());
        put("desc.cache", &1u32.to_ne_bytes());
        put("desc.next", &page.to_ne_bytes());
        put("desc.on_node", &1u32.to_ne_bytes());
        map[page as usize * 4..][..4].copy_from_slice(&page.to_ne_bytes());
    }
    let range = own.range();
    own.put(range + own.at("range.descs"), kept(descs));
    own.put(range + own.at("range.map"), kept(map));
    own.put_u32(range + own.at("range.first"), 0);
    own.put_u32(range + own.at("range.count"), pages + 1);
    own.put_u32(range + own.at("range.frontier"), pages + 1);
    let node = own.cache(0) + own.at("cache.nodes") + own.at("part.node");
    own.put_u32(node + own.at("node.head"), 1);
    own.put_u32(node + own.at("node.nr_partial"), u32::MAX);
}

/// Changes words without end.
fn churn(own: &Own) -> ! {
    let (engine, cache) = (own.engine(), own.cache(0));
    let rows = own.get(cache + own.at("cache.rows"));
    let mut noise = 1u64;
    loop {
        for (at, bytes) in [
            (engine, own.at("engine.present")),
            (cache, own.at("cache.sizeof")),
            (rows, 4096),
        ] {
            noise = noise.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            let at = at + (noise >> 40) % (bytes / 8) * 8;
            let was = own.get(at);
            own.put(at, noise >> (noise & 63));
            own.put(at, was);
        }
    }
}

/// A segment without an engine: the bytes of a file, of another length than they say, or of one
/// that changes without end.
fn segment_only(kind: &str, path: &str) {
    let bytes = std::fs::read(path).unwrap();
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file: File = rustix::fs::memfd_create(format::NAME, flags)
        .unwrap()
        .into();
    let len = bytes.len() as u64;
    file.write_all_at(&bytes, 0).unwrap();
    match kind {
        "noise" => file.write_all_at(&[0xee; 4096], 128).unwrap(),
        "cut" => file.set_len(5000).unwrap(),
        "huge" => file.set_len(1 << 40).unwrap(),
        "grown" => file.set_len(len + 1).unwrap(),
        "flicker" => drop(std::thread::spawn(move || {
            loop {
                for len in [4096, 2 * len, 0, len] {
                    file.set_len(len).unwrap();
                }
                file.write_all_at(&bytes, 0).unwrap();
            }
        })),
        _ => panic!("{kind}"),
    }
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn lie(own: &Own, kind: &str) {
    let nowhere = 0x10;
    match kind {
        "true" => {}
        "engines" => own.put(own.engine() + own.at("engine.next"), own.engine()),
        "counts" => {
            own.put_u32(own.engine() + own.at("engine.nr_caches"), u32::MAX);
            own.put_u32(own.at("root.slots_used"), u32::MAX);
        }
        "limits" => {
            for name in [
                "const.max_slots",
                "const.max_caches",
                "const.stats",
                "const.barn_sheaves",
            ] {
                own.rename(name, 256);
            }
        }
        "sizes" => own.rename("node.sizeof", 200 << 10),
        "nowhere" => {
            for (name, at) in [
                ("cache.rows", own.cache(0)),
                ("engine.depot", own.engine()),
                ("engine.guarded", own.engine()),
            ] {
                own.put(at + own.at(name), nowhere);
            }
        }
        "layer" => own.put(
            own.cache(2) + own.at("cache.outside") + own.at("outside.debug"),
            nowhere,
        ),
        "far" => {
            own.put(own.range() + own.at("range.base"), u64::MAX - 4096);
            let cache = own.cache(0) + own.at("cache.object_offset");
            own.put_u32(cache, 7);
        }
        "stacks" => {
            let used = own.get(own.engine() + own.at("engine.depot")) + 16;
            own.put(used, u64::MAX);
        }
        "slabs" => slabs(own, 1 << 20),
        "zeroes" => {
            let zeroes = kept(vec![0; 3 << 30]);
            own.put(own.range() + own.at("range.descs"), zeroes);
            own.put(own.range() + own.at("range.map"), zeroes);
            own.put_u32(own.range() + own.at("range.count"), u32::MAX / 128);
            own.put_u32(own.range() + own.at("range.frontier"), u32::MAX / 128);
        }
        "user" => {
            let at = format::IDENTITY.at + format::identity::UID;
            own.segment.write_all_at(&[0; 8], at as u64).unwrap();
        }
        _ => panic!("{kind}"),
    }
}

/// The program; does nothing in a run that is no target.
pub fn main() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    if let Ok(path) = std::env::var(SEGMENT) {
        return segment_only(&kind, &path);
    }
    let engine = Engine::new(EngineConfig::new()).unwrap();
    let layout = Layout::from_size_align(64, 8).unwrap();
    for (name, flags) in [("plain", ""), (NAME, ""), ("debug", "FZPU")] {
        let mut builder = CacheBuilder::new(&engine, name, layout);
        if !flags.is_empty() {
            builder = builder.debug_flags(flags.parse().unwrap());
        }
        let cache = builder.build().unwrap();
        for _ in 0..500 {
            let _ = std::hint::black_box(cache.alloc());
        }
        std::mem::forget(cache);
    }
    let found = inspect::of_process(std::process::id()).unwrap().unwrap();
    let segment = inspect::read(&found.file).unwrap();
    let mut options = File::options();
    let options = options.read(true).write(true);
    let own = Own {
        memory: options.open("/proc/self/mem").unwrap(),
        segment: options.open(&found.path).unwrap(),
        layout: segment.layout,
    };
    // The system's name of the program, too.
    std::fs::write("/proc/self/comm", "a\x1b[2Jb").unwrap();
    match &*kind {
        "churn" => drop(std::thread::spawn(move || churn(&own))),
        kind => lie(&own, kind),
    }
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
    // Its own end would follow what was changed.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

/// A running one.
pub struct Hostile(Child);

impl Hostile {
    /// Starts this program again: its test named `target` is the target.
    pub fn start(kind: &str) -> Self {
        Self::by(Command::new(std::env::current_exe().unwrap()), kind)
    }

    /// With a segment only, of these bytes.
    pub fn segment(kind: &str, file: &std::path::Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SEGMENT, file);
        Self::by(command, kind)
    }

    /// The segment of this process, in a file.
    pub fn copy(&self) -> tempfile::NamedTempFile {
        let found = inspect::of_process(self.0.id()).unwrap().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(found.path, file.path()).unwrap();
        file
    }

    /// By a command that gets the program's arguments.
    pub fn by(mut command: Command, kind: &str) -> Self {
        command
            .args(["--exact", "target", "--nocapture"])
            .env(KIND, kind);
        Self::ready(command)
    }

    /// Waits until a program says that it is ready.
    pub fn ready(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let this = Self(child);
        let mut lines = out.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("ready")));
        this
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        // Where it ended already there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
