//! hackbench with processes: 20 senders and 20 receivers a group, over socket pairs.
//!
//! Source of truth: hackbench (`perf bench sched messaging`): each receiver has a socket
//! pair, to which all senders of its group write messages of 100 bytes. A sender's and a
//! receiver's buffer are objects of the allocator under test, for each message.
//!
//! What it can show: what an allocator costs beside system calls and the scheduler. What it
//! cannot: how objects come back from another processor. A kernel's slabs are of all
//! processes, and the message itself is allocated by the sender's and freed by the receiver's
//! processor. Here each process has its own allocator, and frees only what it allocated.

use super::messages::{LOOPS, SIDE};
use super::{Done, Figure};
use crate::{Contender, Pool};
use slabcore::stats::Counters;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a message.
const MESSAGE: usize = 100;

/// What a process tells: in memory that all share.
#[repr(C)]
struct Told {
    /// Messages received.
    received: AtomicU64,
    /// Of these with a wrong stamp, or not in their sender's order.
    wrong: AtomicU64,
    /// Set when the counters are there.
    counted: AtomicU64,
    counters: Counters,
}

/// A page or more for what processes tell.
struct Shared {
    at: *mut Told,
    n: usize,
}

impl Shared {
    fn map(n: usize) -> Option<Self> {
        // SAFETY: a new mapping, shared with the children.
        let at = unsafe {
            libc::mmap(
                null_mut(),
                n * size_of::<Told>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (at != libc::MAP_FAILED).then_some(Self { at: at.cast(), n })
    }

    fn place(&self, n: usize) -> *mut Told {
        debug_assert!(n < self.n);
        // SAFETY: `n` is below the places that are mapped.
        unsafe { self.at.add(n) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is.
        unsafe { libc::munmap(self.at.cast(), self.n * size_of::<Told>()) };
    }
}

/// One process of the bench.
struct Member {
    /// Of its group's receivers, or of its senders.
    receives: bool,
    number: usize,
}

/// The sockets of a group.
struct Group {
    /// One for each receiver.
    read: Vec<UnixStream>,
    /// What senders write to.
    write: Vec<UnixStream>,
}

impl Group {
    fn new() -> Option<Self> {
        let pairs = (0..SIDE).map(|_| UnixStream::pair().ok());
        let (read, write) = pairs.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Self { read, write })
    }
}

/// A message: who sent it, and which of his it is for this receiver.
fn stamp(sender: usize, turn: usize) -> [u8; MESSAGE] {
    let mut message = [1; MESSAGE];
    message[..8].copy_from_slice(&(sender as u64).to_le_bytes());
    message[8..16].copy_from_slice(&(turn as u64).to_le_bytes());
    message
}

/// Sends all messages of a sender; `None` if somebody does not take them.
fn send<P: Pool>(pool: &P, sender: usize, mut to: Vec<UnixStream>) -> Option<()> {
    for turn in 0..LOOPS {
        for socket in &mut to {
            let buffer = pool.alloc();
            if buffer.is_null() {
                return None;
            }
            // SAFETY: allocated just now, of 512 bytes; freed below.
            let message = unsafe {
                buffer.copy_from_nonoverlapping(stamp(sender, turn).as_ptr(), MESSAGE);
                std::slice::from_raw_parts(buffer, MESSAGE)
            };
            let sent = socket.write_all(message);
            // SAFETY: as above.
            unsafe { pool.free(buffer) };
            sent.ok()?;
        }
    }
    Some(())
}

/// Receives all messages for a receiver; `None` if not all of them came.
fn receive<P: Pool>(pool: &P, mut from: UnixStream, told: &Told) -> Option<()> {
    let mut turns = [0; SIDE];
    for _ in 0..SIDE * LOOPS {
        let buffer = pool.alloc();
        if buffer.is_null() {
            return None;
        }
        // SAFETY: allocated just now, of 512 bytes; initialised, and freed below.
        let message = unsafe {
            buffer.write_bytes(0, MESSAGE);
            std::slice::from_raw_parts_mut(buffer, MESSAGE)
        };
        let came = from.read_exact(message);
        let sender = usize::from(message[0]);
        let turn = turns.get_mut(sender);
        let right = turn.is_some_and(|turn| {
            let right = message == stamp(sender, *turn);
            *turn += 1;
            right
        });
        // SAFETY: as above.
        unsafe { pool.free(buffer) };
        came.ok()?;
        told.received.fetch_add(1, Relaxed);
        told.wrong.fetch_add(u64::from(!right), Relaxed);
    }
    Some(())
}

/// What a child does between the start and its end.
fn child<C: Contender>(
    contender: &C,
    member: &Member,
    group: Group,
    mut start: UnixStream,
    place: *mut Told,
) -> Option<()> {
    // SAFETY: the place is this process's own until it ends; zero is a valid value of it.
    let told = unsafe { &*place };
    let pool = contender.pool(512)?;
    let Group { mut read, write } = group;
    if member.receives {
        drop(write);
        let own = read.swap_remove(member.number);
        drop(read);
        start.read_exact(&mut [0]).ok()?;
        receive(&pool, own, told)?;
    } else {
        drop(read);
        start.read_exact(&mut [0]).ok()?;
        send(&pool, member.number, write)?;
    }
    if let Some(counters) = contender.counters() {
        // SAFETY: nobody reads the field before `counted` is set, and this process has ended.
        unsafe { (&raw mut (*place).counters).write(counters) };
        told.counted.store(1, Relaxed);
    }
    Some(())
}

/// Children, which end and are waited for in any case.
struct Children(Vec<libc::pid_t>);

impl Children {
    /// Waits for all; gives how many did not end well.
    fn wait(&mut self) -> u64 {
        let mut failed = 0;
        for pid in self.0.drain(..) {
            let mut status = 0;
            // SAFETY: waits for a child of this process.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            failed += u64::from(waited != pid || status != 0);
        }
        failed
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Time of a message in `groups` groups of processes; `None` if they cannot be had.
pub(super) fn hackbench<C: Contender>(contender: &C, groups: usize) -> Option<Done> {
    let all = groups * SIDE * SIDE * LOOPS;
    let shared = Shared::map(groups * SIDE * 2)?;
    let mut children = Children(Vec::new());
    // Who reads from `wait` is held until something is written to `go`, or ends when it goes: so
    // before the children are waited for.
    let (wait, mut go) = UnixStream::pair().ok()?;
    for number in 0..groups {
        let group = Group::new()?;
        for at in 0..2 * SIDE {
            let member = Member {
                receives: at < SIDE,
                number: at % SIDE,
            };
            let place = shared.place(number * 2 * SIDE + at);
            // SAFETY: the child uses the allocators and sockets only, and ends by `_exit`.
            match unsafe { libc::fork() } {
                0 => {
                    drop(go);
                    let work = || child(contender, &member, group, wait, place);
                    let done = catch_unwind(AssertUnwindSafe(work));
                    let well = matches!(done, Ok(Some(())));
                    // SAFETY: ends the child, and nothing of the parent with it.
                    unsafe { libc::_exit(i32::from(!well)) };
                }
                pid if pid < 0 => return None,
                pid => children.0.push(pid),
            }
        }
    }
    drop(wait);
    let begin = Instant::now();
    go.write_all(&vec![1; children.0.len()]).ok()?;
    let failed = children.wait();
    let time = begin.elapsed().as_nanos() as f64 / all as f64;
    Some(told(&shared, all, failed, time))
}

/// What all processes told, after they have ended.
fn told(shared: &Shared, all: usize, failed: u64, time: f64) -> Done {
    let (mut received, mut wrong) = (0, 0);
    let mut counters = None;
    for n in 0..shared.n {
        // SAFETY: the process that wrote it has ended.
        let told = unsafe { &*shared.place(n) };
        received += told.received.load(Relaxed);
        wrong += told.wrong.load(Relaxed);
        if told.counted.load(Relaxed) == 1 {
            let sum = counters.get_or_insert_with(Counters::default);
            sum.add_all(&told.counters);
        }
    }
    let lost = (all as u64).saturating_sub(received);
    let sound = failed + wrong + lost == 0 && received == all as u64;
    Done {
        figures: vec![Figure::ns("message", time)],
        counters,
        wrong: (!sound).then(|| {
            format!("{wrong} messages are wrong, {lost} are lost, {failed} processes failed")
        }),
    }
}
