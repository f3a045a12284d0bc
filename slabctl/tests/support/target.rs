//! A program on slabcore's engine, to be looked into from outside by the tests.
//!
//! It is the test's own program, started again with the variable [`OPTIONS`]: `caches=N objects=N
//! size=BYTES threads=N debug=FLAGS segment=PLACE busy=1 sparse=1 engines=N`. It makes caches, fills
//! them from several threads, says `ready`, and goes on until its input ends. A line `more N` allocates
//! N more objects of each cache and answers `done`; a line `exec` makes another program of it.

use std::alloc::Layout;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use slabcore::segment::Place;
use slabcore::{Cache, CacheBuilder, Engine, EngineConfig, TypedCache};

/// Names the variable.
pub const OPTIONS: &str = "SLABCTL_TEST_TARGET";

fn option(name: &str) -> Option<&'static str> {
    let options = std::env::var(OPTIONS).ok()?;
    let found = options
        .split(' ')
        .find_map(|of| of.strip_prefix(name)?.strip_prefix('='));
    found.map(|text| &*Box::leak(text.to_owned().into_boxed_str()))
}

fn number(name: &str, otherwise: usize) -> usize {
    option(name).map_or(otherwise, |text| text.parse().unwrap_or(otherwise))
}

fn fill(caches: &[Cache], objects: usize) {
    for cache in caches {
        for _ in 0..objects {
            // Kept for ever.
            let _ = std::hint::black_box(cache.alloc());
        }
    }
}

/// Leaves one object of every tenth in a cache of its own, by another function than the rest.
fn sparse(engine: &Engine) -> Result<(), Box<dyn std::error::Error>> {
    let cache = &*Box::leak(Box::new(TypedCache::<[u64; 8]>::new(engine, "sparse")?));
    let mut rest = Vec::new();
    for n in 0..1000 {
        if n % 10 == 0 {
            std::mem::forget(pinning(cache));
        } else {
            rest.push(cache.insert([n; 8]));
        }
    }
    Ok(())
}

#[inline(never)]
fn pinning(cache: &'static TypedCache<[u64; 8]>) -> Option<slabcore::Slabbed<'static, [u64; 8]>> {
    std::hint::black_box(cache.insert([7; 8]).ok())
}

/// One more engine, with one cache.
fn other(_: usize) -> Result<(Engine, Cache), slabcore::Error> {
    let engine = Engine::new(EngineConfig::new())?;
    let cache = CacheBuilder::new(&engine, "other", Layout::new::<u64>()).build()?;
    Ok((engine, cache))
}

/// Allocates and frees without end, in a cache of its own.
fn churn(engine: &Engine, stop: &AtomicBool) {
    let cache = TypedCache::<[u64; 20]>::new(engine, "churn").unwrap();
    while !stop.load(Ordering::Relaxed) {
        let all: Vec<_> = (0..500).map(|n| cache.insert([n; 20]).unwrap()).collect();
        std::hint::black_box(&all);
    }
}

/// The program; does nothing in a run that is no target.
pub fn main() {
    if std::env::var_os(OPTIONS).is_some() {
        target().unwrap();
    }
}

fn target() -> Result<(), Box<dyn std::error::Error>> {
    let segment = option("segment").map_or(Some(Place::Memfd), Place::parse);
    let engine = Engine::new(EngineConfig {
        nodes: 2,
        segment: segment.ok_or("no such place")?,
        debug: option("debug"),
        ..EngineConfig::new()
    })?;
    let layout = Layout::from_size_align(number("size", 64), 8)?;
    let make = |n| CacheBuilder::new(&engine, &format!("target-{n}"), layout).build();
    let caches: Result<Vec<Cache>, _> = (0..number("caches", 3)).map(make).collect();
    let caches = caches?;
    let others: Result<Vec<_>, _> = (0..number("engines", 0)).map(other).collect();
    let threads = number("threads", 1);
    let (done, stop) = (Barrier::new(threads), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                fill(&caches, number("objects", 1000) / threads);
                done.wait();
                while !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
        }
        fill(&caches, number("objects", 1000) / threads);
        done.wait();
        if number("sparse", 0) == 1 {
            std::mem::forget(sparse(&engine));
        }
        if number("busy", 0) == 1 {
            scope.spawn(|| churn(&engine, &stop));
        }
        println!("ready");
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Some(n) = line.strip_prefix("more ").and_then(|n| n.parse().ok()) {
                fill(&caches, n);
                println!("done");
            }
            if line == "exec" {
                use std::os::unix::process::CommandExt as _;
                println!("done");
                return Err(Command::new("cat").exec());
            }
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    // As a program's own allocator they stay to the end.
    std::mem::forget((engine, caches, others));
    Ok(())
}

/// A running target.
pub struct Target {
    pub child: Child,
    out: BufReader<ChildStdout>,
}

impl Target {
    /// Starts this program again: its test named `target` is the target.
    pub fn start(options: &[&str]) -> Self {
        Self::start_from(&std::env::current_exe().unwrap(), options)
    }

    /// The same from a copy of this program at another place.
    pub fn start_from(program: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", "target", "--nocapture"]);
        command.env(OPTIONS, options.join(" "));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, out };
        this.wait_for("ready");
        this
    }

    fn wait_for(&mut self, word: &str) {
        // The test says that it runs, too.
        let lines = (&mut self.out).lines().map_while(Result::ok);
        let mut lines = lines.filter(|line| line.ends_with(word));
        assert!(lines.next().is_some(), "{word}");
    }

    /// Has it allocate more objects of each cache.
    pub fn more(&mut self, objects: usize) {
        self.say(&format!("more {objects}"));
    }

    /// Says a line to it, and waits until it was heard.
    pub fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        self.wait_for("done");
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Has it come to its end.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Where it ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
