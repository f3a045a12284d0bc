//! Messages between the processors of a [`Machine`].
//!
//! Source of truth: hackbench, where senders run until the sockets' buffers are full and receivers
//! until they are empty; and stress-ng's rawpkt on the loopback device.

use super::{Machine, Of, Tally};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ptr::NonNull;

/// Who receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// Any processor.
    Anybody,
    /// The same other one each time.
    Partner,
}

/// Messages on their way.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    /// Messages that wait for a processor before it stops to send and receives.
    pub depth: usize,
    /// Messages that each processor sends on average, after `2 * depth` each that do not count.
    pub each: usize,
    /// Who receives.
    pub to: To,
    /// Cycles of everything else for a message.
    pub work: u64,
}

struct Cpu {
    /// The objects of messages, those of one message side by side.
    inbox: VecDeque<(Of, NonNull<u8>)>,
    receiving: bool,
}

impl Messages {
    /// Runs them, each with an object of each cache; `None` if memory is short.
    pub fn run(&self, machine: &mut Machine, caches: &[Of]) -> Option<Tally> {
        let n = machine.cpus();
        let full = self.depth * caches.len();
        let first = 2 * self.depth * n;
        let last = first + self.each * n;
        let mut cpus: Vec<Cpu> = (0..n)
            .map(|_| Cpu {
                inbox: VecDeque::new(),
                receiving: false,
            })
            .collect();
        let mut next: BinaryHeap<_> = (0..n).map(|cpu| Reverse((0, cpu))).collect();
        let mut sent = 0;
        while let Some(Reverse((_, cpu))) = next.pop() {
            let it = &mut cpus[cpu];
            if it.inbox.len() >= full {
                it.receiving = true;
            } else if it.inbox.is_empty() {
                it.receiving = false;
            }
            if it.receiving {
                for (of, object) in it.inbox.drain(..caches.len()) {
                    // SAFETY: it was on its way, and is freed once.
                    unsafe { machine.free(cpu, of, object) };
                }
            } else {
                let to = self.receiver(machine, cpu);
                for of in caches {
                    let object = machine.alloc(cpu, *of)?;
                    cpus[to].inbox.push_back((*of, object));
                }
                sent += 1;
                if sent == first {
                    machine.take_tally();
                }
                if sent >= last {
                    break;
                }
            }
            // From half to three halves, so that processors do not go in step.
            let half = self.work / 2;
            let jitter = machine.rng.below(half.max(1) as usize) as u64;
            machine.works(cpu, half / 2 + jitter);
            next.push(Reverse((machine.clocks[cpu], cpu)));
        }
        let tally = machine.take_tally();
        for (cpu, it) in cpus.into_iter().enumerate() {
            for (of, object) in it.inbox {
                // SAFETY: as above.
                unsafe { machine.free(cpu, of, object) };
            }
        }
        machine.take_tally();
        Some(tally)
    }

    fn receiver(&self, machine: &mut Machine, cpu: usize) -> usize {
        let n = machine.cpus();
        match self.to {
            To::Partner => (cpu ^ 1).min(n - 1),
            To::Anybody => machine.rng.below(n),
        }
    }
}
