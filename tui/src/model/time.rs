//! Which of the kept samples is shown: live, paused and stepped back are one
//! cursor over one ring.
//!
//! While the screen is held, samples are still taken and kept, so that nothing
//! is missed; the cursor stays at the sample that is shown.

use std::time::Duration;

use super::history::History;
use super::moment::{Moment, Sample, Tracker};

/// The samples and the cursor.
#[derive(Debug)]
pub struct Time {
    /// The newest sample.
    pub newest: Option<Moment>,
    /// The one before it.
    previous: Option<Moment>,
    /// The one that is shown.
    pub shown: Option<Moment>,
    /// The one before that.
    pub before: Option<Moment>,
    /// The first one for which everything was asked.
    pub first: Option<Moment>,
    /// The last one for which everything was asked.
    pub full: Option<Moment>,
    /// What is known of the machine; its build options are read once.
    pub machine: Option<collectors::model::System>,
    /// What was marked to be compared with.
    pub mark: Option<Moment>,
    /// The ones before the newest.
    pub history: History,
    /// How many samples ago the shown one was the newest.
    pub back: usize,
    /// Whether the screen is held.
    pub paused: bool,
    tracker: Tracker,
}

impl Time {
    /// No sample yet.
    pub fn new(max_age: Duration, max_bytes: usize) -> Self {
        Self {
            newest: None,
            previous: None,
            shown: None,
            before: None,
            first: None,
            full: None,
            machine: None,
            mark: None,
            history: History::new(max_age, max_bytes),
            back: 0,
            paused: false,
            tracker: Tracker::default(),
        }
    }

    /// Takes a new sample. True when it is shown.
    pub fn push(&mut self, sample: Sample) -> bool {
        let keys = self.tracker.follow(self.newest.as_ref(), &sample.snapshot);
        let moment = Moment {
            snapshot: std::sync::Arc::new(sample.snapshot),
            keys,
            at: sample.at,
            took: sample.took,
        };
        if self.machine.as_ref().is_none_or(|m| m.config.is_empty()) {
            self.machine = Some(moment.snapshot.system.clone());
        }
        if sample.full {
            self.first.get_or_insert_with(|| moment.clone());
            self.full = Some(moment.clone());
        }
        if let Some(old) = &self.newest {
            self.history.push(old, &moment);
        }
        self.previous = self.newest.replace(moment);
        if self.paused {
            // A sample that fell out of the ring stays on the screen all the same.
            self.back = (self.back + 1).min(self.history.len());
            return false;
        }
        self.show_newest();
        true
    }

    fn show_newest(&mut self) {
        self.back = 0;
        self.shown.clone_from(&self.newest);
        self.before.clone_from(&self.previous);
    }

    /// Holds the screen, or goes on with the newest sample.
    pub fn pause(&mut self, hold: bool) {
        self.paused = hold;
        if !hold {
            self.show_newest();
        }
    }

    /// Shows the sample `back` steps ago, or the oldest that is kept, and
    /// holds the screen.
    pub fn go(&mut self, back: usize) {
        let Some(newest) = &self.newest else {
            return;
        };
        self.paused = true;
        let back = back.min(self.history.len());
        if back == 0 {
            self.show_newest();
            return;
        }
        self.back = back;
        self.shown = Some(self.history.moment(newest, back));
        let older = back < self.history.len();
        self.before = older.then(|| self.history.moment(newest, back + 1));
    }

    /// Shows the sample nearest to `at`, from the start of the program.
    pub fn go_to(&mut self, at: Duration) {
        let Some(newest) = &self.newest else {
            return;
        };
        let distance = |t: Duration| t.abs_diff(at);
        let kept = (1..=self.history.len()).filter_map(|back| Some((self.history.at(back)?, back)));
        let nearest = kept
            .chain([(newest.at, 0)])
            .min_by_key(|(t, back)| (distance(*t), *back));
        if let Some((_, back)) = nearest {
            self.go(back);
        }
    }

    /// How old the shown sample is compared with the newest.
    pub fn age(&self) -> Duration {
        match (&self.newest, &self.shown) {
            (Some(newest), Some(shown)) => newest.at.saturating_sub(shown.at),
            _ => Duration::ZERO,
        }
    }

    /// Time between the shown sample and another.
    pub fn elapsed_since(&self, base: Option<&Moment>) -> Option<Duration> {
        let elapsed = self.shown.as_ref()?.at.saturating_sub(base?.at);
        (!elapsed.is_zero()).then_some(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cache, sample};

    fn after(seconds: u64) -> Time {
        let mut time = Time::new(Duration::from_secs(600), 1 << 20);
        for second in 0..seconds {
            time.push(sample(vec![cache("a", second + 1)], second));
        }
        time
    }

    fn slabs(moment: Option<&Moment>) -> u64 {
        let cache = &moment.unwrap().snapshot.caches[0];
        cache.slabs().unwrap().value.get()
    }

    #[test]
    fn a_held_screen_stays_while_samples_go_on_being_kept() {
        let mut time = after(5);
        time.pause(true);
        for second in 5..9 {
            assert!(!time.push(sample(vec![cache("a", second + 1)], second)));
        }
        assert_eq!(slabs(time.shown.as_ref()), 5);
        assert_eq!((time.back, time.age()), (4, Duration::from_secs(4)));
        time.go(time.back - 1);
        assert_eq!(slabs(time.shown.as_ref()), 6);
        assert_eq!(slabs(time.before.as_ref()), 5);
        time.pause(false);
        assert_eq!(slabs(time.shown.as_ref()), 9);
    }

    #[test]
    fn stepping_stops_at_the_oldest_sample() {
        let mut time = after(5);
        time.go(100);
        assert_eq!(slabs(time.shown.as_ref()), 1);
        assert!(time.before.is_none());
        time.go_to(Duration::from_millis(2400));
        assert_eq!(slabs(time.shown.as_ref()), 3);
        time.go_to(Duration::from_secs(500));
        assert_eq!(slabs(time.shown.as_ref()), 5);
        assert!(time.paused);
    }
}
