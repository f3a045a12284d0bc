//! Messages that one thread allocates and another frees.
//!
//! Source of truth: hackbench (`perf bench sched messaging`): groups of 20
//! senders and 20 receivers, each sender sends to each receiver of its group; and
//! stress-ng's rawpkt: packets on the loopback device. What the kernel does there
//! is done here by the allocator under test: a message is an object of its.

use super::alone::{is_stamped, per_op, stamp};
use super::{Done, Figure};
use crate::Pool;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Senders, and receivers, of a group.
pub(super) const SIDE: usize = 20;
/// Messages from each sender to each receiver.
pub(super) const LOOPS: usize = 50;
/// Messages that a receiver's queue holds, as a socket's buffer does.
const ROOM: usize = 64;

/// A message on its way.
struct Message(*mut u8);
// SAFETY: whoever has the value owns the object.
unsafe impl Send for Message {}

/// A queue to one thread.
#[derive(Default)]
struct Queue {
    list: Mutex<VecDeque<Message>>,
    filled: Condvar,
    emptied: Condvar,
}

impl Queue {
    fn put(&self, message: Message) {
        let held = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = self
            .emptied
            .wait_while(held, |list| list.len() >= ROOM)
            .unwrap_or_else(PoisonError::into_inner);
        held.push_back(message);
        self.filled.notify_one();
    }

    /// All that is there; waits for something.
    fn take(&self, into: &mut VecDeque<Message>) {
        let held = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = self
            .filled
            .wait_while(held, |list| list.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *held, into);
        self.emptied.notify_all();
    }
}

/// Time of a message in `groups` groups.
pub(super) fn hackbench<P: Pool>(pool: &P, groups: usize) -> Done {
    let wrong = AtomicU64::new(0);
    let received = AtomicU64::new(0);
    let queues: Vec<Queue> = (0..groups * SIDE).map(|_| Queue::default()).collect();
    let all = groups * SIDE * SIDE * LOOPS;
    let send = |queues: &[Queue]| {
        for turn in 0..LOOPS {
            for queue in queues {
                let object = pool.alloc();
                // SAFETY: allocated just now, of 512 bytes.
                unsafe {
                    stamp(object, turn as u64);
                    object.add(8).write_bytes(1, 92);
                }
                queue.put(Message(object));
            }
        }
    };
    let receive = |queue: &Queue| {
        let mut batch = VecDeque::new();
        let mut left = SIDE * LOOPS;
        while left > 0 {
            queue.take(&mut batch);
            left -= batch.len();
            received.fetch_add(batch.len() as u64, Relaxed);
            for Message(object) in batch.drain(..) {
                // SAFETY: the message is ours; it is freed once.
                unsafe {
                    let turn = object.cast::<u64>().read();
                    if turn >= LOOPS as u64 || *object.add(99) != 1 {
                        wrong.fetch_add(1, Relaxed);
                    }
                    pool.free(object);
                }
            }
        }
    };
    let time = per_op(all, || {
        thread::scope(|scope| {
            for group in queues.chunks(SIDE) {
                for queue in group {
                    scope.spawn(move || receive(queue));
                    scope.spawn(move || send(group));
                }
            }
        });
    });
    let (wrong, received) = (wrong.into_inner(), received.into_inner());
    let lost = all as u64 - received;
    Done {
        figures: vec![Figure::ns("message", time)],
        counters: None,
        wrong: (wrong + lost > 0).then(|| format!("{wrong} messages are wrong, {lost} are lost")),
    }
}

/// Packets of a burst, and bursts.
const BURST: usize = 64;
const BURSTS: usize = 4000;

/// Time of a packet: its head and its data.
pub(super) fn rawpkt<P: Pool>(heads: &P, data: &P) -> Done {
    let (to, from) = std::sync::mpsc::sync_channel::<Vec<(Message, Message)>>(4);
    let mut wrong = 0u64;
    let time = per_op(BURST * BURSTS, || {
        thread::scope(|scope| {
            let freeing = scope.spawn(move || {
                let mut wrong = 0u64;
                for (burst, number) in from.into_iter().zip(0u64..) {
                    for (head, body) in burst {
                        // SAFETY: both are ours, and are freed once.
                        unsafe {
                            let whole = is_stamped(head.0, number) && is_stamped(body.0, !number);
                            wrong += u64::from(!whole);
                            data.free(body.0);
                            heads.free(head.0);
                        }
                    }
                }
                wrong
            });
            for number in 0..BURSTS as u64 {
                let burst = (0..BURST).map(|_| {
                    let (head, body) = (heads.alloc(), data.alloc());
                    // SAFETY: allocated just now.
                    unsafe {
                        stamp(head, number);
                        stamp(body, !number);
                    }
                    (Message(head), Message(body))
                });
                if to.send(burst.collect()).is_err() {
                    break;
                }
            }
            drop(to);
            wrong = freeing.join().unwrap_or(u64::MAX);
        });
    });
    Done {
        figures: vec![Figure::ns("packet", time)],
        counters: None,
        wrong: (wrong > 0).then(|| format!("{wrong} packets lost their stamps")),
    }
}
