//! The processor's counter of time, for figures in cycles as the threads have them.
//!
//! On x86-64 the time-stamp counter, on aarch64 the virtual counter: both go on at a
//! fixed rate, whatever the processor's own frequency is at the moment.

use std::time::Instant;

/// The counter; `None` on other machines.
pub fn now() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it, and Linux lets programs read it.
    let ticks = Some(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(target_arch = "aarch64")]
    let ticks = {
        let ticks: u64;
        // SAFETY: it reads a register that Linux lets programs read.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        Some(ticks)
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let ticks = None;
    ticks
}

/// How fast the counter goes.
#[derive(Debug)]
pub struct Rate {
    start: Instant,
    ticks: Option<u64>,
}

impl Rate {
    /// Begins to measure it.
    pub fn begin() -> Self {
        Self {
            start: Instant::now(),
            ticks: now(),
        }
    }

    /// Ticks in a nanosecond since then; `None` where there is no counter.
    pub fn per_ns(&self) -> Option<f64> {
        let ticks = now()?.checked_sub(self.ticks?)?;
        let time = self.start.elapsed().as_nanos() as f64;
        (time > 0.0 && ticks > 0).then(|| ticks as f64 / time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_rate_is_the_same_twice() {
        let rate = Rate::begin();
        std::thread::sleep(Duration::from_millis(30));
        let Some(first) = rate.per_ns() else { return };
        std::thread::sleep(Duration::from_millis(60));
        let second = rate.per_ns().unwrap_or(0.0);
        assert!((0.9..1.1).contains(&(first / second)), "{first} {second}");
    }
}
