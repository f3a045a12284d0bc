//! The thread that reads the source, on a schedule of its own.
//!
//! The newest sample lies in a mailbox of one place: a newer one replaces what
//! nobody took, and is counted. Deadlines come from the monotonic clock, so
//! that samples do not drift; one that is late is not made up for.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collectors::model::{Snapshot, Warning};
use collectors::source::{Demand, Source};

use super::event::{Event, SourceError};
use crate::model::{Sample, SitesRead};

/// How often everything that can be read is read, at the most.
const FULL: Duration = Duration::from_secs(30);

/// That takes its time where there are thousands of caches: no more than one
/// part in so many of the time is spent on it.
const FULL_SHARE: u32 = 150;

/// How old the lists of a cache may be whose row in /proc/slabinfo stays the
/// same: on most machines that is nearly all of them.
const UNCHANGED: Duration = Duration::from_secs(10);

/// Where there are thousands of caches, so much for each of them: their files
/// are read again less often.
const UNCHANGED_EACH: Duration = Duration::from_millis(10);

/// What the loop tells the sampler.
#[derive(Debug)]
pub enum Control {
    /// What samples are to have; one is taken at once.
    Demand(Box<Demand>),
    /// How far apart they are to be.
    Interval(Duration),
    /// One sample with the call sites of this cache, at once.
    Look(String),
}

/// The one place in which the newest sample lies.
#[derive(Debug, Default)]
pub struct Mailbox(Mutex<Option<Result<Sample, String>>>);

impl Mailbox {
    /// Takes what lies there.
    pub fn take(&self) -> Option<Result<Sample, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Replaces what lies there; `counts` is whether that is a sample missed.
    fn put(&self, mut mail: Result<Sample, String>, counts: bool) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Ok(new), Some(Ok(old))) = (&mut mail, place.as_mut()) {
            if old.full && !new.full {
                // Everything is read seldom: what was read then is not given up for less.
                old.replaced += u64::from(counts);
                old.sites = new.sites.take().or(old.sites.take());
                return;
            }
            new.replaced = old.replaced + u64::from(counts);
            if new.sites.is_none() {
                new.sites.clone_from(&old.sites);
            }
        }
        *place = Some(mail);
    }
}

/// Opens a source, on the thread that will read it.
pub type Open = Box<dyn FnOnce() -> Result<Box<dyn Source>, SourceError> + Send>;

/// What the sampler is started with.
pub struct Sampling {
    /// Opens the source.
    pub open: Open,
    /// When the program was started.
    pub start: Instant,
    /// What samples are to have.
    pub demand: Demand,
    /// How far apart they are to be.
    pub interval: Duration,
    /// Where they are put.
    pub mailbox: Arc<Mailbox>,
    /// Whom to tell.
    pub events: SyncSender<Event>,
    /// What the loop says.
    pub control: Receiver<Control>,
}

/// Starts the thread. It ends when the loop does.
pub fn spawn(sampling: Sampling) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("sampler".to_owned())
        .spawn(move || run(sampling))
}

fn run(sampling: Sampling) {
    let Sampling {
        open,
        start,
        demand,
        interval,
        mailbox,
        events,
        control,
    } = sampling;
    let source = match open() {
        Ok(source) => source,
        Err(error) => {
            // Nobody to tell: the loop has ended.
            let _ = events.send(Event::Failed(error));
            return;
        }
    };
    let opened = Event::Opened {
        describe: source.describe(),
        live: source.is_live(),
    };
    if events.send(opened).is_err() {
        return;
    }
    Sampler {
        source,
        start,
        demand,
        interval,
        mailbox,
        events,
        control,
        full_at: None,
        full_after: FULL,
        caches: 0,
        scheduled: false,
    }
    .work();
}

struct Sampler {
    source: Box<dyn Source>,
    start: Instant,
    demand: Demand,
    interval: Duration,
    mailbox: Arc<Mailbox>,
    events: SyncSender<Event>,
    control: Receiver<Control>,
    /// When everything was read last.
    full_at: Option<Instant>,
    /// How long after that it is due again.
    full_after: Duration,
    /// How many caches the last sample had.
    caches: usize,
    /// Whether samples are taken on schedule by now.
    scheduled: bool,
}

impl Sampler {
    fn work(mut self) {
        if self.source.is_live() {
            // The first frame needs the list only; the rest follows at once.
            let names = Demand::names();
            if !self.first(&names, false) {
                return;
            }
            self.sample(None);
        } else if !self.first(&everything(), true) {
            return;
        }
        self.scheduled = true;
        let mut next = Instant::now() + self.interval;
        loop {
            let wait = if self.source.is_live() {
                next.saturating_duration_since(Instant::now())
            } else {
                Duration::from_secs(3600)
            };
            match self.control.recv_timeout(wait) {
                Ok(Control::Interval(interval)) => {
                    self.interval = interval;
                    next = Instant::now() + interval;
                }
                Ok(Control::Demand(demand)) => {
                    self.demand = *demand;
                    if self.source.is_live() {
                        self.sample(None);
                    }
                }
                Ok(Control::Look(cache)) => self.sample(Some(cache)),
                Err(RecvTimeoutError::Timeout) => {
                    if self.source.is_live() {
                        self.sample(None);
                        next = following(next, self.interval);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The first sample; without it there is nothing to show.
    fn first(&mut self, demand: &Demand, full: bool) -> bool {
        match self.read(demand, full) {
            Ok(sample) => {
                self.mailbox.put(Ok(sample), false);
                self.events.send(Event::Mail).is_ok()
            }
            Err(error) => {
                let _ = self.events.send(Event::Failed(Box::new(error)));
                false
            }
        }
    }

    /// Reads what is due, and the call sites of a cache where they are asked for.
    fn sample(&mut self, look: Option<String>) {
        let due = self
            .full_at
            .is_none_or(|at| at.elapsed() >= self.full_after);
        let mut demand = self.demand.clone();
        demand.unchanged_for = if due {
            Duration::ZERO
        } else {
            unchanged_for(self.caches)
        };
        if due {
            demand.merge(&everything());
            demand.skip_empty = false;
            // Build options do not change.
            demand.machine |= self.full_at.is_none();
            self.full_at = Some(Instant::now());
        }
        demand.sites_of.clone_from(&look);
        let mut mail = self.read(&demand, due).map_err(|e| e.to_string());
        if let (true, Ok(sample)) = (due, &mail) {
            self.full_after = full_after(sample.took);
        }
        if let (Ok(sample), Some(id)) = (&mut mail, look) {
            sample.sites = Some(take_sites(&mut sample.snapshot, id));
        }
        // Before the first schedule there is nothing to be late for.
        self.mailbox.put(mail, self.scheduled);
        // When the channel is full, the loop has enough to do, and finds the
        // sample when it is told of the next one.
        let _ = self.events.try_send(Event::Mail);
    }

    fn read(&mut self, demand: &Demand, full: bool) -> Result<Sample, collectors::Error> {
        let began = Instant::now();
        let snapshot = self.source.sample(demand)?;
        let took = began.elapsed();
        self.caches = snapshot.caches.len();
        Ok(Sample {
            snapshot,
            at: self.start.elapsed(),
            took,
            full,
            replaced: 0,
            cpu_time: cpu_time(),
            sites: None,
        })
    }
}

/// Takes the records out of a snapshot, in which they would be kept for long.
fn take_sites(snapshot: &mut Snapshot, id: String) -> SitesRead {
    let place = snapshot.named(&id).next().map(|cache| cache.id.0);
    let cache = place.and_then(|place| snapshot.caches.get_mut(place as usize));
    let of_traces = |w: &&Warning| {
        let file = w.file.as_deref().unwrap_or_default();
        ["_traces", "_calls"].iter().any(|end| file.ends_with(end))
    };
    SitesRead {
        sites: cache.and_then(|cache| cache.sites.take()),
        warnings: snapshot
            .warnings
            .iter()
            .filter(of_traces)
            .map(ToString::to_string)
            .collect(),
        id,
    }
}

/// When everything is due again that took so long.
fn full_after(took: Duration) -> Duration {
    FULL.max(took * FULL_SHARE)
}

/// How old the lists of caches that did not move may be among so many.
fn unchanged_for(caches: usize) -> Duration {
    UNCHANGED.max(UNCHANGED_EACH * u32::try_from(caches).unwrap_or(u32::MAX))
}

fn everything() -> Demand {
    Demand::everything()
}

/// The deadline after `last`; those that have passed are left out.
pub(super) fn following(last: Instant, interval: Duration) -> Instant {
    let now = Instant::now();
    let next = last + interval;
    if next > now { next } else { now + interval }
}

/// Processor time of the whole program so far.
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_done_less_often() {
        assert_eq!(unchanged_for(235), UNCHANGED);
        assert_eq!(unchanged_for(5000), Duration::from_secs(50));
        assert_eq!(full_after(Duration::from_millis(20)), FULL);
        assert_eq!(full_after(Duration::from_secs(1)), Duration::from_secs(150));
    }
}
