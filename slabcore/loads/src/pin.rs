//! A thread kept on one processor, where that is allowed.
//!
//! So that a measurement is of the allocator and not of a thread's way between
//! processors. Loads whose threads wait for each other by the dozen (hackbench)
//! are left to the scheduler, as the programs they repeat are.

use std::mem::zeroed;

/// Kept on one processor until it is dropped.
#[derive(Debug)]
pub struct Pinned(Option<libc::cpu_set_t>);

impl Pinned {
    /// Keeps the calling thread on the processor of a number among those it may use, counted
    /// around; where that cannot be done, nothing changes.
    pub fn to(number: usize) -> Self {
        Self(before(number))
    }
}

/// The processors that were allowed before; `None` if nothing was changed.
fn before(number: usize) -> Option<libc::cpu_set_t> {
    // SAFETY: a set of processors is numbers without meaning of their own; the calls get sets
    // of the size that is told.
    unsafe {
        let mut all: libc::cpu_set_t = zeroed();
        if libc::sched_getaffinity(0, size_of_val(&all), &raw mut all) != 0 {
            return None;
        }
        let allowed = (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &all));
        let allowed: Vec<usize> = allowed.collect();
        let cpu = *allowed.get(number.checked_rem(allowed.len())?)?;
        let mut one: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut one);
        let done = libc::sched_setaffinity(0, size_of_val(&one), &raw const one) == 0;
        done.then_some(all)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(all) = &self.0 {
            // SAFETY: as above. Whether it worked matters to nobody any more.
            unsafe { libc::sched_setaffinity(0, size_of_val(all), std::ptr::from_ref(all)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> i32 {
        // SAFETY: as in `before`.
        unsafe {
            let mut all: libc::cpu_set_t = zeroed();
            libc::sched_getaffinity(0, size_of_val(&all), &raw mut all);
            libc::CPU_COUNT(&all)
        }
    }

    #[test]
    fn a_thread_is_on_one_processor_until_it_is_let_go() {
        let before = allowed();
        let pinned = Pinned::to(1);
        assert_eq!(allowed(), 1);
        drop(pinned);
        assert_eq!(allowed(), before);
    }
}
