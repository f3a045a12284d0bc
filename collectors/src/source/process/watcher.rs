//! Watching for the end of a process that waits to be looked at, from a thread of its own.
//!
//! Source of truth: `slabcore::inspect::Watch` and the mailbox of the segment. Where the memory of a
//! process is read it can make its reader wait (`aside`); who waits for the process's end must
//! pass on signals meanwhile, and notice the end. What it does not do: look into the process.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use slabcore::inspect::{self, Watch};

/// How long a look is waited for before it is left for the next time.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the process is told that it is looked at.
const WORD: Duration = Duration::from_secs(1);
/// How long it is tried to let it go: as long as it would wait.
const LAST_WORD: Duration = Duration::from_secs(60);

/// What the thread is asked for.
enum Ask {
    Look,
    LetGo,
}

/// Watches one process.
#[derive(Debug)]
pub struct Watcher {
    ask: Sender<Ask>,
    seen: Receiver<bool>,
    /// A look was asked for and has not come back.
    looking: bool,
}

impl Watcher {
    /// Nothing is looked at yet.
    pub fn new(pid: u32) -> Self {
        Self::with(Watched {
            pid,
            watch: Watch::new(pid),
        })
    }

    fn with(mut watched: impl Looked) -> Self {
        let (ask, asked) = channel();
        let (tell, seen) = channel();
        // The thread ends with its channel. Without one nothing is ever seen.
        let _ = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                for what in asked {
                    match what {
                        Ask::Look => {
                            if tell.send(watched.is_waiting()).is_err() {
                                return;
                            }
                        }
                        Ask::LetGo => watched.let_go(),
                    }
                }
            });
        Self {
            ask,
            seen,
            looking: false,
        }
    }

    /// Whether the process has come to its end and waits; it was told then that it is looked at.
    /// False also if a look does not come back in a moment.
    pub fn is_waiting(&mut self) -> bool {
        self.looking = self.looking || self.ask.send(Ask::Look).is_ok();
        match self.seen.recv_timeout(PATIENCE) {
            Ok(seen) => {
                self.looking = false;
                seen
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Has the thread let the process end. Not waited for: that the process ends is to be seen.
    pub fn let_go(&self) {
        // Without a thread the process waits for its time.
        let _ = self.ask.send(Ask::LetGo);
    }
}

/// What is watched, or stands for it.
trait Looked: Send + 'static {
    fn is_waiting(&mut self) -> bool;
    fn let_go(&mut self);
}

struct Watched {
    pid: u32,
    watch: Watch,
}

impl Looked for Watched {
    fn is_waiting(&mut self) -> bool {
        let waits = self.watch.is_waiting();
        if waits {
            // One that is gone meanwhile is told of when it is looked at.
            let _ = inspect::have_wait(self.pid, WORD);
        }
        waits
    }

    fn let_go(&mut self) {
        // One that is gone meanwhile needs no word.
        let _ = inspect::let_go(self.pid, LAST_WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Lets its first look wait, and tells when it is let go.
    struct Slow(Receiver<()>, Sender<()>);

    impl Looked for Slow {
        fn is_waiting(&mut self) -> bool {
            self.0.recv().is_ok()
        }
        fn let_go(&mut self) {
            self.1.send(()).unwrap();
        }
    }

    #[test]
    fn a_look_that_does_not_come_back_holds_nobody_up_and_counts_when_it_comes() {
        let (go, wait) = channel();
        let (tell, told) = channel();
        let mut watcher = Watcher::with(Slow(wait, tell));
        let began = Instant::now();
        assert!(!watcher.is_waiting() && !watcher.is_waiting());
        watcher.let_go();
        assert!(began.elapsed() < Duration::from_secs(2));
        assert!(told.try_recv().is_err());
        go.send(()).unwrap();
        // One look was asked for, and it is the one that comes.
        assert!(watcher.is_waiting());
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(()));
    }
}
