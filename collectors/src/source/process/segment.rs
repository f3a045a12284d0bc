//! The segment that a process left in a file: its last published figures.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use slabcore::inspect;
use slabcore::segment::{Segment, format};

use super::super::engine;
use crate::error::Error;
use crate::model::{Origin, OriginKind, Snapshot, Warning, WarningCode, Warnings};
use crate::source::{Demand, Source};

/// Whether a file begins as a segment does. A pipe is none, and nothing is waited for.
pub fn is_segment(path: &Path) -> bool {
    let plain = std::fs::metadata(path).is_ok_and(|of| of.is_file());
    let mut start = [0; 8];
    plain
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == format::MAGIC
}

/// The program whose segment a file is, if it was left by a process of this number and start.
pub fn left_by(path: &Path, pid: u32, start: u64) -> Option<String> {
    let file = inspect::file(path).ok()?;
    let of = inspect::read(&file).ok()?.identity;
    let owner = std::os::unix::fs::MetadataExt::uid(&file.metadata().ok()?);
    let is = (of.pid, of.start, of.uid) == (pid.into(), start, owner.into());
    is.then_some(of.program)
}

/// A segment in a file.
#[derive(Debug)]
pub struct SegmentSource {
    path: PathBuf,
    segment: Segment,
}

impl SegmentSource {
    /// Reads it once: its process is gone, or is looked at by its number.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = inspect::file(path).map_err(|error| Error::from_io(path, error))?;
        let segment = inspect::read(&file).map_err(|why| Error::Broken {
            path: path.to_owned(),
            why: why.to_string(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            segment,
        })
    }
}

impl Source for SegmentSource {
    fn describe(&self) -> String {
        let of = &self.segment.identity;
        let path = self.path.display();
        format!("{path}: process {} ({})", of.pid, of.program)
    }

    fn is_live(&self) -> bool {
        false
    }

    fn sample(&mut self, _: &Demand) -> Result<Snapshot, Error> {
        let mut warnings = Warnings::default();
        let says = match self.segment.state {
            format::state::ENDED => "the process came to its end",
            format::state::FAULT => "the process was stopped after a report",
            _ if is_running(&self.segment) => "the process still runs: --pid shows more",
            _ => {
                "the process ended without a word, as by a signal: what it did after its figures were last published is not in them"
            }
        };
        warnings.push(Warning::new(WarningCode::Note, says));
        note_age(&self.segment, None, &mut warnings);
        let origin = Origin {
            taken_at: taken_at(&self.segment),
            ..Origin::new(OriginKind::Capture, self.describe())
        };
        Ok(snapshot(&self.segment, origin, warnings))
    }
}

pub(super) fn taken_at(segment: &Segment) -> Option<Timestamp> {
    let ns = segment.published.pass_real_ns;
    let time = Timestamp::from_nanosecond(ns.into()).ok();
    time.filter(|_| ns != 0)
}

/// Whether the process of a segment is still there: the same number and the same start.
fn is_running(segment: &Segment) -> bool {
    let of = &segment.identity;
    let start = u32::try_from(of.pid).ok().map(inspect::start_of);
    start.is_some_and(|start| start.is_ok_and(|start| start == of.start))
}

/// Says when the figures were published, against `now` or as a time.
pub(super) fn note_age(segment: &Segment, now: Option<u64>, warnings: &mut Warnings) {
    let published = &segment.published;
    let mut note = |says: String| warnings.push(Warning::new(WarningCode::Note, says));
    let [_, end] = published.pass_ns;
    match (now, taken_at(segment)) {
        _ if end == 0 => note("nothing was published yet".to_owned()),
        (Some(now), _) => {
            let age = now.saturating_sub(end) / 1_000_000;
            note(format!("figures as of {age} ms ago"));
        }
        (None, Some(time)) => note(format!("figures as of {time}")),
        (None, None) => {}
    }
    let torn = published.caches.iter().filter(|of| !of.whole).count();
    if torn > 0 {
        warnings.push(Warning::new(
            WarningCode::Race,
            format!("the figures of {torn} caches were being written: they may be of two moments"),
        ));
    }
    if published.left_out > 0 {
        let n = published.left_out;
        let says = format!("{n} caches found no room in the segment");
        warnings.push(Warning::new(WarningCode::Incomplete, says));
    }
}

/// The published figures in the model.
pub(super) fn snapshot(segment: &Segment, origin: Origin, warnings: Warnings) -> Snapshot {
    engine::sums(segment, origin, warnings)
}
