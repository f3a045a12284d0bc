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
            });
        }
        machine.slab_caches = slab_caches()?;
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
            self.say_lost(warnings)?;
        }
        let seen = record::parse(&bytes);
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
        let mut settings = self.settings()?;
        for (setting, value) in [
            (record::SETTING_WALK, walk),
            (record::SETTING_PARTS, parts),
            (record::SETTING_LOST, 0),
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

    fn say_lost(&mut self, warnings: &mut Warnings) -> Result<(), Refusal> {
        let setting = u32::try_from(record::SETTING_LOST).unwrap_or(u32::MAX);
        let lost = self
            .settings()?
            .get(&setting, 0)
            .map_err(|error| refused("the settings of the programs", &error))?;
        if lost > 0 {
            warnings.push(Warning::new(
                WarningCode::Incomplete,
                format!("{lost} records of caches found no room and are missing"),
            ));
        }
        Ok(())
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
/// A ring that nobody uses is as small as one can be.
const MIN_RING: u32 = 1 << 16;

fn load(machine: &Machine, ring: u32) -> Result<Ebpf, Refusal> {
    machine.load(SNAPSHOT, |loader| {
        loader
            .override_global("possible_nodes", &machine.nodes, true)
            .override_global("page_size", &machine.page_size, true)
            .override_global("slab_caches", &machine.slab_caches, true)
            .map_max_entries("stream", ring);
    })
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
