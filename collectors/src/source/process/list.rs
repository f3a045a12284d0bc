//! The processes of this machine that run on slabcore's engine, as far as one may see them.

use std::fs;
use std::io;

use slabcore::inspect;
use slabcore::segment::Segment;

use super::{Inspector, Process, program};

/// Processes that are looked at.
const MOST: usize = 1 << 20;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub pid: u32,
    /// Its program's name.
    pub program: String,
    /// Its user, by the segment.
    pub uid: u64,
    /// The engine, with a version.
    pub engine: String,
    /// Its caches; `None` where nothing is known yet, as of the next three.
    pub caches: Option<u64>,
    /// Objects in use, in slabs.
    pub objects: Option<u64>,
    /// Bytes in runs that are in use: slabs and large objects.
    pub used_bytes: Option<u64>,
    /// Reports about damage.
    pub faults: Option<u64>,
    /// Its memory may be read; otherwise there are published sums only.
    pub readable: bool,
    /// Why it cannot be looked into, although it has a segment.
    pub refused: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The processes, by number.
    pub processes: Vec<Listed>,
    /// Processes that may not be looked at.
    pub hidden: u64,
}

/// Looks through `/proc`.
pub fn list() -> io::Result<Listing> {
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .take(MOST)
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let mut listing = Listing::default();
    for pid in pids {
        match inspect::of_process(pid) {
            Ok(Some(found)) => listing.processes.extend(listed(pid, &found.file)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => listing.hidden += 1,
            // It has none, or ended meanwhile.
            Ok(None) | Err(_) => {}
        }
    }
    Ok(listing)
}

fn listed(pid: u32, file: &fs::File) -> Option<Listed> {
    let (segment, refused) = match inspect::read(file) {
        Ok(segment) => (segment, None),
        // Only what says that it is one, but cannot be read.
        Err(inspect::Refusal::NoSegment) => return None,
        Err(why) => (Segment::default(), Some(why.to_string())),
    };
    let mut listed = Listed {
        pid,
        program: program(pid, &segment),
        uid: segment.identity.uid,
        engine: segment.identity.engine.clone(),
        caches: None,
        objects: None,
        used_bytes: None,
        faults: None,
        readable: false,
        refused,
    };
    if listed.refused.is_none() {
        look(&segment, &mut listed);
    }
    Some(listed)
}

fn look(segment: &Segment, listed: &mut Listed) {
    let engines = match Process::open(listed.pid) {
        Ok(process) => {
            let seen = Inspector::new(process, segment).and_then(|of| of.snapshot());
            listed.readable = true;
            seen.map_err(|why| listed.refused = Some(why.to_string()))
                .ok()
        }
        Err(_) if segment.identity.pid == u64::from(listed.pid) => {
            let published = inspect::published(segment);
            Some(published).filter(|_| segment.published.pass_ns[1] != 0)
        }
        Err(_) => None,
    };
    let Some(engines) = engines else {
        return;
    };
    let caches = || engines.iter().flat_map(|engine| &engine.caches);
    listed.caches = Some(caches().count() as u64);
    listed.objects = Some(caches().map(|of| of.objects).sum());
    listed.used_bytes = Some(engines.iter().map(|of| of.used).sum());
    listed.faults = Some(engines.iter().map(|of| of.faults).sum());
}
