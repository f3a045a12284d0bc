//! Records that another process reads while they change, and requests that it makes.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;
use slabcore::generation::{Generation, Requests};

struct Record {
    words: [AtomicU64; 2],
    values: [AtomicU64; 2],
}

impl Record {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: [AtomicU64::new(0), AtomicU64::new(0)],
            values: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn generation(&self) -> Generation<'_> {
        Generation {
            first: &self.words[0],
            second: &self.words[1],
        }
    }

    /// Both values are the same number, but while they change.
    fn write(&self, n: u64) {
        self.generation().change(|| {
            self.values[0].store(n, Relaxed);
            self.values[1].store(n, Relaxed);
        });
    }

    fn read(&self) -> Option<[u64; 2]> {
        let look = || [0, 1].map(|n: usize| self.values[n].load(Relaxed));
        self.generation().read(look)
    }
}

#[test]
fn what_is_read_is_of_one_moment() {
    loom::model(|| {
        let record = Record::new();
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                record.write(1);
                record.write(2);
            })
        };
        if let Some([a, b]) = record.read() {
            assert_eq!(a, b);
        }
        writer.join().unwrap();
        assert_eq!(record.read(), Some([2, 2]));
    });
}

#[test]
fn a_writer_that_ended_in_the_middle_is_seen_and_the_next_mends_it() {
    loom::model(|| {
        let record = Record::new();
        // As a thread that a fork left behind.
        record.words[0].store(1, Relaxed);
        assert_eq!(record.read(), None);
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || record.write(3))
        };
        if let Some(seen) = record.read() {
            assert_eq!(seen, [3, 3]);
        }
        writer.join().unwrap();
        assert_eq!(record.read(), Some([3, 3]));
    });
}

#[test]
fn a_request_is_taken_by_one_and_its_answer_is_whole() {
    loom::model(|| {
        let words: Arc<[AtomicU64; 4]> = Arc::new([0, 0, 0, 0].map(AtomicU64::new));
        fn of(words: &[AtomicU64; 4]) -> Requests<'_> {
            Requests {
                request: &words[0],
                taken: &words[1],
                done: &words[2],
            }
        }
        let serve = |words: &[AtomicU64; 4]| {
            let taken = of(words).take();
            if let Some(request) = taken {
                words[3].store(request + 100, Relaxed);
                of(words).finish(request);
            }
            taken.is_some()
        };
        let request = Requests::next(0, 2);
        words[0].store(request, loom::sync::atomic::Ordering::Release);
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || serve(&words))
        };
        let ours = serve(&words);
        if words[2].load(loom::sync::atomic::Ordering::Acquire) == request {
            assert_eq!(words[3].load(Relaxed), request + 100);
        }
        assert_ne!(ours, other.join().unwrap(), "one of them, and only one");
        assert_eq!(of(&words).take(), None);
    });
}
