//! Looks at another process from a thread of their own.
//!
//! What another process has can make a reader wait for as long as it likes: memory whose pages a
//! program of its own serves, files of a filesystem of its own, locks of its memory map. No
//! limit inside the reader ends that. So each look runs in a thread that is left behind when it
//! takes too long, and what it looks with goes with it: afterwards nothing can be asked.
//!
//! The time of several looks comes out of one purse, which fills again while nothing is asked,
//! so that a command of several looks ends in time and `top` goes on for ever. What it does not
//! do: end the thread that is left behind; it ends with the program.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs it in a thread; `None` if it took longer than that, or did not come back at all.
pub(super) fn within<R: Send + 'static>(
    time: Duration,
    look: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let (send, receive) = mpsc::sync_channel(1);
    let name = thread::Builder::new().name("look".to_owned());
    // Who waits no more has dropped the other end.
    let thread = name.spawn(move || send.send(look()).unwrap_or(())).ok()?;
    match receive.recv_timeout(time) {
        Ok(seen) => Some(seen),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            // It panicked, and so does who asked, as if it had looked itself.
            thread
                .join()
                .map_or_else(|panic| std::panic::resume_unwind(panic), |()| None)
        }
    }
}

/// Something to look with, and the time that looks may take.
#[derive(Debug)]
pub(super) struct Aside<T> {
    /// `None` once a look did not come back.
    with: Option<T>,
    left: Duration,
    since: Instant,
}

/// All looks of one command take no longer than this.
pub(super) const LONGEST: Duration = Duration::from_millis(3500);

impl<T: Send + 'static> Aside<T> {
    /// Of what took so long to be made.
    pub fn new(with: T, took: Duration) -> Self {
        Self {
            with: Some(with),
            left: LONGEST.saturating_sub(took),
            since: Instant::now(),
        }
    }

    /// Looks with a time of its own, as a question does that another process may answer slowly.
    pub fn look_within<R: Send + 'static>(
        &mut self,
        time: Duration,
        look: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Option<R> {
        let mut with = self.with.take()?;
        let (with, seen) = within(time, move || {
            let seen = look(&mut with);
            (with, seen)
        })?;
        self.with = Some(with);
        self.since = Instant::now();
        Some(seen)
    }

    /// Looks; `look` is told until when it has time, for all of its steps. `None` if it did not
    /// come back by then, now or at an earlier look.
    pub fn look<R: Send + 'static>(
        &mut self,
        look: impl FnOnce(&mut T, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        let mut with = self.with.take()?;
        let began = Instant::now();
        let rested = began.saturating_duration_since(self.since);
        let left = self.left.saturating_add(rested).min(LONGEST);
        let end = began + left;
        let seen = within(left, move || {
            let seen = look(&mut with, end);
            (with, seen)
        });
        self.since = Instant::now();
        self.left = left.saturating_sub(began.elapsed());
        let (with, seen) = seen?;
        self.with = Some(with);
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_back_is_left_behind_and_not_asked_again() {
        let mut aside = Aside::new(7, LONGEST.saturating_sub(Duration::from_millis(50)));
        assert_eq!(aside.look(|n, _| *n + 1), Some(8));
        let began = Instant::now();
        let stuck = aside.look(|_, _| thread::sleep(Duration::from_secs(60)));
        assert_eq!(stuck, None);
        assert_eq!(aside.look(|n, _| *n), None);
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn several_looks_share_the_time_and_a_rest_gives_it_back() {
        let mut aside = Aside::new((), Duration::ZERO);
        let work = Duration::from_millis(60);
        let mut left = || {
            let began = Instant::now();
            let end = aside.look(|(), end| end).unwrap();
            end.duration_since(began)
        };
        let first = left();
        aside.look(move |(), _| thread::sleep(work));
        let mut left = || {
            let began = Instant::now();
            let end = aside.look(|(), end| end).unwrap();
            end.duration_since(began)
        };
        let second = left();
        assert!(first >= LONGEST, "{first:?}");
        assert!(second + work / 2 <= LONGEST, "{second:?}");
        thread::sleep(2 * work);
        assert!(left() >= LONGEST);
    }

    #[test]
    #[should_panic(expected = "as if here")]
    fn a_fault_of_a_look_is_not_hidden() {
        let none: Option<()> = within(LONGEST, || panic!("as if here"));
        assert_eq!(none, None);
    }
}
