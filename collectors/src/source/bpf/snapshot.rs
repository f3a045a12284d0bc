//! All caches in one pass, by the programs of collectors/bpf/snapshot.bpf.c.
//!
//! Loaded once, read as often as wanted. Since Linux 6.13 the kernel has an
//! iterator of caches; on older ones the programs walk its list, whose address
//! is in /proc/kallsyms.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};

use aya::Ebpf;
use aya::maps::{Array, MapData, RingBuf};

use super::object::{Machine, SNAPSHOT, iterate, refused};
use super::preflight::Refusal;
use super::record::{self, Seen};
use crate::model::{Cache, Warning, WarningCode, Warnings};
use crate::source::Demand;

/// The loaded programs.
pub struct Snapshots {
    machine: Machine,
    ebpf: Ebpf,
    /// What the programs write to, on kernels without the iterator.
    ring: Option<RingBuf<MapData>>,
    /// Slabs and free objects that one run of a program looks at.
    budget: u64,
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots")
            .field("iterator", &self.ring.is_none())
            .finish_non_exhaustive()
    }
}

/// The programs of the object.
const ITERATOR: &str = "caches";
const LIST: &str = "list";

/// Bytes of the ring: a cache is half a kilobyte, and its parts 80 each. A
/// machine with more parts than fit is told which records were lost.
const RING: u32 = 4 << 20;
/// The kernel's iterator gives the records of one cache at once, and has room
/// for 32 KiB: processors beyond this number are not told one by one.
const CPUS_TOLD: u32 = 256;

impl Snapshots {
    /// Loads the programs, or says why they cannot be used.
    pub fn open() -> Result<Self, Refusal> {
        let mut machine = Machine::look()?;
        let mut ebpf = load(&machine, MIN_RING)?;
        if machine.load_iterator(&mut ebpf, ITERATOR, "kmem_cache")? {
            return Ok(Self {
                machine,
                ebpf,
                ring: None,
                budget: BUDGET,
            });
        }
        machine.slab_caches = slab_caches()?;
        Self::walking(machine)
    }

    /// The programs that walk the list of caches of this machine.
    fn walking(machine: Machine) -> Result<Self, Refusal> {
        let mut ebpf = load(&machine, RING)?;
        // Any iterator would do: the first step walks the list.
        machine.load_iterator(&mut ebpf, LIST, "bpf_map")?;
        let missing = || Refusal::Refused {
            what: "the ring of records".to_owned(),
            why: "it is not in the object".to_owned(),
        };
        let map = ebpf.take_map("stream").ok_or_else(missing)?;
        let ring =
            RingBuf::try_from(map).map_err(|error| refused("the ring of records", &error))?;
        Ok(Self {
            machine,
            ebpf,
            ring: Some(ring),
            budget: BUDGET,
        })
    }

    /// What the programs were told of the machine.
    pub(super) const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// All caches, in the order of /proc/slabinfo. Names are those of the first
    /// of merged caches; other names and flags are not in here.
    pub fn caches(
        &mut self,
        demand: &Demand,
        warnings: &mut Warnings,
    ) -> Result<Vec<Cache>, Refusal> {
        let seen = self.seen(demand, warnings)?;
        Ok(seen.into_iter().map(|seen| seen.cache).collect())
    }

    /// The same, with the addresses that other programs need.
    pub(super) fn seen(
        &mut self,
        demand: &Demand,
        warnings: &mut Warnings,
    ) -> Result<Vec<Seen>, Refusal> {
        self.set(demand)?;
        let program = match self.ring {
            None => ITERATOR,
            Some(_) => LIST,
        };
        let file = iterate(&mut self.ebpf, program)?;
        let mut bytes = read(file).map_err(|error| refused("reading the caches", &error))?;
        if let Some(ring) = &mut self.ring {
            while let Some(record) = ring.next() {
                bytes.extend_from_slice(&record);
            }
        }
        let (seen, whole) = record::parse(&bytes);
        self.say_missing(&seen, whole, warnings)?;
        if seen.is_empty() {
            return Err(Refusal::Refused {
                what: "reading the caches".to_owned(),
                why: "the programs ran and saw none".to_owned(),
            });
        }
        Ok(seen)
    }

    /// Tells the programs how far to go.
    fn set(&mut self, demand: &Demand) -> Result<(), Refusal> {
        let mut parts = 0;
        if demand.nodes {
            parts |= record::PARTS_NODES as u64;
        }
        if demand.cpus && self.machine.cpus <= CPUS_TOLD {
            parts |= record::PARTS_CPUS as u64;
        }
        let walk = if demand.exact {
            EXACT_WALK
        } else {
            demand.walk_limit.min(EXACT_WALK)
        };
        let budget = self.budget;
        let mut settings = self.settings()?;
        for (setting, value) in [
            (record::SETTING_WALK, walk),
            (record::SETTING_PARTS, parts),
            (record::SETTING_BUDGET, budget),
            (record::SETTING_LEFT, budget),
            (record::SETTING_LOST, 0),
            (record::SETTING_UNSEEN, 0),
            (record::SETTING_ENDED, 0),
        ] {
            let setting = u32::try_from(setting).unwrap_or(u32::MAX);
            settings
                .set(setting, value, 0)
                .map_err(|error| refused("the settings of the programs", &error))?;
        }
        Ok(())
    }

    fn settings(&mut self) -> Result<Array<&mut MapData, u64>, Refusal> {
        let missing = || Refusal::Refused {
            what: "the settings of the programs".to_owned(),
            why: "they are not in the object".to_owned(),
        };
        let map = self.ebpf.map_mut("settings").ok_or_else(missing)?;
        Array::try_from(map).map_err(|error| refused("the settings of the programs", &error))
    }

    /// Says what is not in the figures. `whole`: all that the programs wrote could
    /// be read.
    fn say_missing(
        &mut self,
        seen: &[Seen],
        whole: bool,
        warnings: &mut Warnings,
    ) -> Result<(), Refusal> {
        let settings = self.settings()?;
        let count = |setting: usize| {
            let setting = u32::try_from(setting).unwrap_or(u32::MAX);
            settings
                .get(&setting, 0)
                .map_err(|error| refused("the settings of the programs", &error))
        };
        let partly = |seen: &&Seen| seen.moved & record::MOVED_UNREAD as u64 != 0;
        let missing = Missing {
            lost: count(record::SETTING_LOST)?,
            unseen: count(record::SETTING_UNSEEN)?,
            partly: seen.iter().filter(partly).count(),
            ended: count(record::SETTING_ENDED)? > 0,
            cut: !whole,
        };
        for text in missing.told() {
            warnings.push(Warning::new(WarningCode::Incomplete, text));
        }
        Ok(())
    }
}

/// What is not in the figures.
#[derive(Debug, Default)]
struct Missing {
    /// Records without room.
    lost: u64,
    /// Caches of which nothing could be read.
    unseen: u64,
    /// Caches of which a node or a processor could not be read.
    partly: usize,
    /// The kernel's list of caches led nowhere before its end.
    ended: bool,
    /// The records end where a cache does not.
    cut: bool,
}

impl Missing {
    /// Each on its own, in words.
    fn told(&self) -> Vec<String> {
        let Self {
            lost,
            unseen,
            partly,
            ..
        } = self;
        let lines = [
            (
                *lost > 0,
                format!("{lost} records of caches found no room and are missing"),
            ),
            (
                *unseen > 0,
                format!("{unseen} caches could not be read and are missing"),
            ),
            (
                *partly > 0,
                format!("of {partly} caches a part could not be read; their figures are missing"),
            ),
            (
                self.ended,
                "the list of caches changed under the programs; caches may be missing".to_owned(),
            ),
            (
                self.cut,
                "the records of the programs end early; caches may be missing".to_owned(),
            ),
        ];
        lines
            .into_iter()
            .filter_map(|(is, text)| is.then_some(text))
            .collect()
    }
}

/// Reads a pass of an iterator. The kernel runs it as far as one read has room.
fn read(mut file: fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut room = vec![0; 1 << 16];
    loop {
        match file.read(&mut room) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(room.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Slabs of a node that are looked at where exact figures are asked for. The
/// walk does not end while another takes the processor, so it has a bound.
const EXACT_WALK: u64 = 1 << 20;
/// Slabs and free objects that one run of a program looks at: of one cache where
/// the kernel gives one after the other, of all together where the list is walked.
/// It is reached by no list alone.
const BUDGET: u64 = 2 * EXACT_WALK;
/// Caches whose free lists in processors' hands are remembered from pass to pass,
/// and how many lists at the most: 56 bytes each.
const CACHES_REMEMBERED: u32 = 512;
const MOST_HANDS: u32 = 1 << 16;
/// A ring that nobody uses is as small as one can be.
const MIN_RING: u32 = 1 << 16;

fn load(machine: &Machine, ring: u32) -> Result<Ebpf, Refusal> {
    machine.load(SNAPSHOT, |loader| {
        loader
            .override_global("possible_nodes", &machine.nodes, true)
            .override_global("page_size", &machine.page_size, true)
            .override_global("slab_caches", &machine.slab_caches, true)
            .map_max_entries("stream", ring)
            .map_max_entries("hands", hands(machine.cpus));
    })
}

fn hands(cpus: u32) -> u32 {
    cpus.saturating_mul(CACHES_REMEMBERED).clamp(1, MOST_HANDS)
}

/// The address of the kernel's list of caches.
fn slab_caches() -> Result<u64, Refusal> {
    let what = "/proc/kallsyms, which kernels before 6.13 need";
    let file = fs::File::open("/proc/kallsyms").map_err(|error| refused(what, &error))?;
    let mut lines = BufReader::with_capacity(1 << 16, file).lines();
    let address = lines.find_map(|line| address_of(&line.ok()?, "slab_caches"));
    match address {
        Some(0) => Err(Refusal::Capabilities(vec!["CAP_SYSLOG"])),
        Some(address) => Ok(address),
        None => Err(Refusal::Refused {
            what: what.to_owned(),
            why: "it has no slab_caches (CONFIG_KALLSYMS_ALL)".to_owned(),
        }),
    }
}

fn address_of(line: &str, symbol: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let address = words.next()?;
    let kind = words.next()?;
    (words.next()? == symbol && words.next().is_none() && kind.len() == 1)
        .then(|| u64::from_str_radix(address, 16).ok())?
}

#[cfg(test)]
mod tests;
