//! What a pass of the BPF snapshot costs: the kernel's own count of the run time
//! of the programs, as root, for more and more partial slabs.
//!
//!     chrt -r 1 cargo bench -p slabctl-collectors --bench bpf
//!
//! Partial slabs are made by files that are watched and, but for one in 32, given
//! up again. Passes are 20 ms apart, so that caches of the processor are no
//! warmer than between two samples. The first pass has nothing to remember; it is
//! told of programs that are loaded anew each time.
#![allow(clippy::print_stdout, reason = "its output is the table")]

use std::error::Error;
use std::time::Duration;

use aya::programs::loaded_programs;
use collectors::model::{Quantity, Warnings};
use collectors::source::Demand;
use collectors::source::bpf::Snapshots;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;

const PASSES: usize = 100;
const FIRST_PASSES: usize = 20;
const GAP: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    // As a test, it only has to work.
    let (passes, first, loads) = if std::env::args().any(|word| word == "--bench") {
        (PASSES, FIRST_PASSES, &[0, 40_000, 140_000, 400_000][..])
    } else {
        (1, 1, &[0][..])
    };
    if let Err(refusal) = Snapshots::open() {
        println!("skipped: no BPF here: {refusal}");
        return Ok(());
    }
    let _counting = aya::sys::enable_stats(aya::sys::Stats::RunTime)?;
    println!(
        "caches  partial slabs  one pass: least, quartile, median    first pass: least, median (us)"
    );
    for watches in loads {
        let load = watch(*watches)?;
        let mut of_first = Vec::new();
        for _ in 0..first {
            of_first.push(Passes::open()?.one()?);
        }
        let mut programs = Passes::open()?;
        programs.one()?;
        let mut times = Vec::new();
        for _ in 0..passes {
            times.push(programs.one()?);
        }
        let at = |times: &mut Vec<Pass>, share: usize| {
            times.sort_by_key(|pass| pass.time);
            times
                .get(times.len() * share / 100)
                .map_or(0.0, |pass| pass.time.as_secs_f64() * 1e6)
        };
        let slabs = times
            .first()
            .map_or((0, 0), |pass| (pass.caches, pass.partial));
        println!(
            "{:>6} {:>14} {:>18.0} {:>9.0} {:>7.0} {:>21.0} {:>7.0}",
            slabs.0,
            slabs.1,
            at(&mut times, 0),
            at(&mut times, 25),
            at(&mut times, 50),
            at(&mut of_first, 0),
            at(&mut of_first, 50),
        );
        drop(load);
    }
    Ok(())
}

struct Pass {
    time: Duration,
    caches: usize,
    partial: u64,
}

struct Passes {
    snapshots: Snapshots,
    /// The numbers of its programs.
    ids: Vec<u32>,
}

impl Passes {
    fn open() -> Result<Self, Box<dyn Error>> {
        let ids = || loaded_programs().flatten().map(|program| program.id());
        let before: Vec<u32> = ids().collect();
        let snapshots = Snapshots::open()?;
        let ids = ids().filter(|id| !before.contains(id)).collect();
        Ok(Self { snapshots, ids })
    }

    /// How long they ran until now.
    fn run_time(&self) -> Duration {
        let programs = loaded_programs().flatten();
        programs
            .filter(|program| self.ids.contains(&program.id()))
            .map(|program| program.run_time())
            .sum()
    }

    fn one(&mut self) -> Result<Pass, Box<dyn Error>> {
        std::thread::sleep(GAP);
        let before = self.run_time();
        let caches = self
            .snapshots
            .caches(&Demand::names(), &mut Warnings::default())?;
        let time = self.run_time().saturating_sub(before);
        let partial = caches
            .iter()
            .filter_map(|cache| cache.get(Quantity::Partial));
        Ok(Pass {
            time,
            caches: caches.len(),
            partial: partial.map(|slabs| slabs.value).sum(),
        })
    }
}

/// So many watched files, of which one in 32 is watched still.
fn watch(count: usize) -> Result<Vec<OwnedFd>, Box<dyn Error>> {
    const FILES: usize = 400;
    let one = eventfd(0, EventfdFlags::CLOEXEC)?;
    let mut held = Vec::new();
    for _ in 0..FILES {
        held.push(one.try_clone()?);
    }
    let mut sets = Vec::new();
    for _ in 0..count / FILES {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for file in &held {
            epoll::add(
                &set,
                file,
                epoll::EventData::new_u64(0),
                epoll::EventFlags::IN,
            )?;
        }
        sets.push(set);
    }
    let watched = sets
        .iter()
        .flat_map(|set| held.iter().map(move |file| (set, file)));
    for (n, (set, file)) in watched.enumerate() {
        if n % 32 != 0 {
            epoll::delete(set, file)?;
        }
    }
    held.extend(sets);
    Ok(held)
}
