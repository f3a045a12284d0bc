//! Loads the objects of `collectors/bpf` into the running kernel.
//!
//! Each use of BPF has an object of its own, so that nobody waits for maps that
//! he does not need. Layouts are found by the kernel's BTF; a program the
//! kernel does not take is a [`Refusal`] with the kernel's reason.

use std::fs;
use std::io;
use std::path::Path;

use aya::programs::{FEntry, Iter, Program, ProgramError};
use aya::{Btf, BtfError, Ebpf, EbpfLoader, include_bytes_aligned};

use super::preflight::{self, Refusal};

/// The snapshot of all caches.
pub(super) static SNAPSHOT: &[u8] = include_bytes_aligned!("../../../bpf/snapshot.bpf.o");
/// Outstanding objects by stack.
pub(super) static LIVE: &[u8] = include_bytes_aligned!("../../../bpf/live.bpf.o");
/// Counts by path.
pub(super) static PATHS: &[u8] = include_bytes_aligned!("../../../bpf/paths.bpf.o");

/// What every program is told of the machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// The kernel's description of its types.
    pub(super) btf: Btf,
    /// Numbers of possible processors, from 0.
    pub(super) cpus: u32,
    /// Numbers of possible nodes, from 0.
    pub(super) nodes: u32,
    /// Bytes in a page.
    pub(super) page_size: u64,
    /// The address of the kernel's list of caches, where programs walk it; else 0.
    pub(super) slab_caches: u64,
}

impl Machine {
    /// Checks that programs can run here, and reads what they need to know.
    pub(super) fn look() -> Result<Self, Refusal> {
        preflight::check()?;
        let btf =
            Btf::from_sys_fs().map_err(|error| refused("reading the kernel's types", &error))?;
        Ok(Self {
            btf,
            cpus: possible("cpu")?,
            nodes: possible("node")?,
            page_size: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            slab_caches: 0,
        })
    }

    /// Makes the maps of an object and prepares its programs; each is loaded on
    /// its own later. `set` names the object's own constants and sizes of maps.
    pub(super) fn load<'a>(
        &'a self,
        object: &[u8],
        set: impl FnOnce(&mut EbpfLoader<'a>),
    ) -> Result<Ebpf, Refusal> {
        self.load_for(&self.btf, object, set)
    }

    /// The same for the structures of any kernel.
    fn load_for<'a>(
        &'a self,
        types: &'a Btf,
        object: &[u8],
        set: impl FnOnce(&mut EbpfLoader<'a>),
    ) -> Result<Ebpf, Refusal> {
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(types))
            .override_global("possible_cpus", &self.cpus, false)
            .map_max_entries("percpu_offsets", self.cpus);
        set(&mut loader);
        loader
            .load(object)
            .map_err(|error| refused("preparing the programs", &error))
    }

    /// Loads an iterator's program. False: the kernel has no such iterator.
    pub(super) fn load_iterator(
        &self,
        ebpf: &mut Ebpf,
        program: &str,
        over: &str,
    ) -> Result<bool, Refusal> {
        match named::<Iter>(ebpf, program)?.load(over, &self.btf) {
            Ok(()) => Ok(true),
            Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) => Ok(false),
            Err(error) => Err(refused(&format!("the iterator of {over}"), &error)),
        }
    }
}

/// Begins one pass of a loaded iterator: its output is read from the file, and
/// nothing else holds the pass.
pub(super) fn iterate(ebpf: &mut Ebpf, program: &str) -> Result<fs::File, Refusal> {
    let failed = |error: ProgramError| refused("the iterator", &error);
    let program = named::<Iter>(ebpf, program)?;
    let link = program.attach().map_err(failed)?;
    let link = program.take_link(link).map_err(failed)?;
    link.into_file()
        .map_err(|error| refused("the iterator", &error))
}

/// Whether the kernel lets programs run at the entry of its functions (fentry).
/// One is loaded to find out, and not attached.
pub fn fentry() -> Result<(), Refusal> {
    let machine = Machine::look()?;
    let mut ebpf = machine.load(SNAPSHOT, |_| {})?;
    named::<FEntry>(&mut ebpf, "fentry_probe")?
        .load("kmem_cache_free", &machine.btf)
        .map_err(|error| refused("programs at the entry of functions (fentry)", &error))
}

/// A program of an object, by its name there.
pub(super) fn named<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Refusal>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    let missing = || Refusal::Refused {
        what: format!("the program {name}"),
        why: "it is not in its object".to_owned(),
    };
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    program
        .try_into()
        .map_err(|error: ProgramError| refused(&format!("the program {name}"), &error))
}

/// A refusal with the kernel's reason: the error's first line, its innermost
/// cause, and the last words of the verifier, whose log may have many lines.
pub(super) fn refused(what: &str, error: &dyn std::error::Error) -> Refusal {
    let text = error.to_string();
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let cause = inner.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| {
        // Statistics of the verifier, which end its log.
        let numbers = ["processed ", "verification time", "stack depth"];
        !line.is_empty() && !numbers.iter().any(|start| line.starts_with(start))
    });
    // Programs that were not looked at have no log.
    let first = lines
        .next()
        .map(|line| line.trim_end_matches(" Verifier output:"));
    let mut parts: Vec<&str> = first.into_iter().collect();
    parts.extend(lines.next_back());
    if !parts.iter().any(|part| part.contains(&*cause)) {
        parts.push(cause.lines().next().unwrap_or_default());
    }
    Refusal::Refused {
        what: what.to_owned(),
        why: parts.join(": ").chars().take(LONGEST).collect(),
    }
}

const LONGEST: usize = 300;

/// One more than the largest number in the list of what can ever be there. A
/// kernel for one node has no list of nodes; without a list of processors nobody
/// knows whose objects would be missing.
fn possible(kind: &str) -> Result<u32, Refusal> {
    possible_in(Path::new("/sys/devices/system"), kind)
}

fn possible_in(system: &Path, kind: &str) -> Result<u32, Refusal> {
    let path = system.join(kind).join("possible");
    let what = || format!("reading {}", path.display());
    match fs::read_to_string(&path) {
        Ok(text) => count_of(&text).ok_or_else(|| Refusal::Refused {
            what: what(),
            why: format!("{:?} is not a list of numbers", text.trim()),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && kind == "node" => Ok(1),
        Err(error) => Err(refused(&what(), &error)),
    }
}

fn count_of(list: &str) -> Option<u32> {
    let number = list.trim().rsplit([',', '-']).next()?;
    number.parse::<u32>().ok()?.checked_add(1)
}

#[cfg(test)]
mod tests;
