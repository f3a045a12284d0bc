//! The processes of this machine that run on slabcore's engine, as far as one may see them.
//!
//! Each is looked at aside and for a moment only, and all of them within a time: what is left
//! then, or lets its reader wait, is told as not looked at.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use slabcore::inspect::{self, Limits, Running};
use slabcore::segment::Segment;

use super::{Inspector, Process, aside, program};

/// Processes that are looked at.
const MOST: usize = 1 << 20;
/// Looks at one that becomes another program by `exec` meanwhile.
const TRIES: u32 = 3;
/// How long one is looked at, and is waited for, and how long all are.
const LOOK: Duration = Duration::from_millis(500);
const ONE: Duration = Duration::from_millis(800);
const ALL: Duration = Duration::from_millis(3500);

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub pid: u32,
    /// Its program's name; `None` where it is not known.
    pub program: Option<String>,
    /// Its user, by the system; `None` if it ended meanwhile.
    pub uid: Option<u32>,
    /// The engine, with a version; `None` where its segment could not be read.
    pub engine: Option<String>,
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
    /// Why it cannot be looked into, although it has a segment or may have one.
    pub refused: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The processes, by number.
    pub processes: Vec<Listed>,
    /// Processes that may not be looked at.
    pub hidden: u64,
    /// Processes that there was no time for.
    pub left_out: u64,
}

/// Looks through `/proc`; at one process only, if it is given.
pub fn list(only: Option<u32>) -> io::Result<Listing> {
    let end = Instant::now() + ALL;
    let mut pids: Vec<u32> = fs::read_dir("/proc")?
        .take(MOST)
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| only.is_none_or(|only| only == *pid))
        .collect();
    pids.sort_unstable();
    let mut listing = Listing::default();
    for pid in pids {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            listing.left_out += 1;
            continue;
        }
        match aside::within(ONE.min(left), move || find(pid)) {
            Some(Ok(found)) => listing.processes.extend(found),
            Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                listing.hidden += 1;
            }
            Some(Err(error)) if is_gone(&error) => {}
            Some(Err(error)) => {
                let why = error.to_string();
                listing.processes.push(Listed::refused(pid, why));
            }
            None => {
                let why = "a look at it did not come back in time".to_owned();
                listing.processes.push(Listed::refused(pid, why));
            }
        }
    }
    Ok(listing)
}

/// It ended meanwhile.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

impl Listed {
    fn refused(pid: u32, why: String) -> Self {
        Self {
            pid,
            program: program(pid, None),
            // The system's word: a process may write any into its segment.
            uid: fs::metadata(format!("/proc/{pid}")).ok().map(|of| of.uid()),
            engine: None,
            caches: None,
            objects: None,
            used_bytes: None,
            faults: None,
            readable: false,
            refused: Some(why),
        }
    }
}

/// A process that has a segment. By `exec` it may have become a program that its user may not look
/// into: what was seen of another than at the beginning is not believed.
fn find(pid: u32) -> io::Result<Option<Listed>> {
    for _ in 0..TRIES {
        let before = Running::of(pid)?;
        let seen = seen(pid)?;
        if Running::of(pid)? == before {
            return Ok(seen);
        }
    }
    let why = "it becomes another program all the time".to_owned();
    Ok(Some(Listed::refused(pid, why)))
}

fn seen(pid: u32) -> io::Result<Option<Listed>> {
    let Some(found) = inspect::of_process(pid)? else {
        return Ok(None);
    };
    let segment = match inspect::read(&found.file) {
        Ok(segment) => segment,
        // Only what says that it is one, but cannot be read.
        Err(inspect::Refusal::NoSegment) => return Ok(None),
        Err(why) => return Ok(Some(Listed::refused(pid, why.to_string()))),
    };
    let mut listed = Listed {
        program: program(pid, Some(&segment)),
        engine: Some(segment.identity.engine.clone()),
        refused: None,
        ..Listed::refused(pid, String::new())
    };
    match Process::open(pid) {
        Ok(process) => look(&mut listed, process, &segment),
        Err(_) if segment.identity.pid == u64::from(pid) && segment.published.pass_ns[1] != 0 => {
            published(&mut listed, &segment);
        }
        Err(_) => {}
    }
    Ok(Some(listed))
}

fn look(listed: &mut Listed, process: Process, segment: &Segment) {
    listed.readable = true;
    let seen = Inspector::new(process, segment).and_then(|inspector| {
        inspector.limit(Limits {
            time: LOOK,
            ..Limits::DEFAULT
        });
        inspector.snapshot()
    });
    let engines = match seen {
        Ok(engines) => engines,
        Err(why) => {
            listed.refused = Some(why.to_string());
            return;
        }
    };
    let caches = || engines.iter().flat_map(|engine| &engine.caches);
    listed.caches = Some(caches().count() as u64);
    listed.objects = sum(caches().map(|of| Some(of.objects)));
    listed.used_bytes = sum(engines.iter().map(|of| Some(of.used)));
    listed.faults = sum(engines.iter().map(|of| Some(of.faults)));
}

/// The sums that it published; one that some engine or cache does not tell is not known.
fn published(listed: &mut Listed, segment: &Segment) {
    let of = &segment.published;
    let caches = of.caches.len() as u64;
    listed.caches = Some(caches.saturating_add(of.left_out));
    let all = of.left_out == 0;
    let objects = sum(of.caches.iter().map(|of| segment.of_cache(of, "objects")));
    listed.objects = objects.filter(|_| all);
    let engines = |name| sum(of.engines.iter().map(|of| segment.of_engine(of, name)));
    listed.used_bytes = engines("used");
    listed.faults = engines("faults");
}

/// `None` if a part is not known, or the sum cannot be true.
fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut parts = parts;
    parts.try_fold(0u64, |sum, part| sum.checked_add(part?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_a_part_that_is_not_known_is_not_known() {
        assert_eq!(sum([Some(1), Some(2)].into_iter()), Some(3));
        assert_eq!(sum([Some(1), None].into_iter()), None);
        assert_eq!(sum([Some(1), Some(u64::MAX)].into_iter()), None);
        assert_eq!(sum(std::iter::empty()), Some(0));
    }
}
