//! The handler of faults in guard pages and freed objects.
//!
//! It reports and then does what would have been done without it: the handler before it runs, or
//! the default action, which ends the process with the signal.
//!
//! It runs on the stack of the thread that faulted, since the alternate stacks that programs usually
//! have are too small to unwind on. So a stack that overflows ends the process without the message
//! that an earlier handler would have printed on such a stack.

use super::report::{self, What};
use super::{Life, Who};
use crate::debug::depot;
use crate::debug::operation::{Operation, cpu, now_ns, thread_id};
use crate::debug::track::Track;
use crate::engine;
use crate::sync::{AtomicU32, Lock, Ordering::Relaxed};
use std::cell::UnsafeCell;

/// What was to be done before.
struct Before {
    lock: Lock,
    installed: AtomicU32,
    action: UnsafeCell<Option<libc::sigaction>>,
}

// SAFETY: `action` is written once, under the lock and before the handler can run, and only read after.
unsafe impl Sync for Before {}

static BEFORE: Before = Before {
    lock: Lock::new(),
    installed: AtomicU32::new(0),
    action: UnsafeCell::new(None),
};

/// Installs the handler, once for the process; false if the system refuses.
pub(crate) fn catch() -> bool {
    let _held = BEFORE.lock.lock();
    if BEFORE.installed.load(Relaxed) != 0 {
        return true;
    }
    // SAFETY: an all-zero action is valid; the calls read and write the given records. The handler
    // has the signature that SA_SIGINFO asks for, and is installed after `action` was written.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut before) != 0 {
            return false;
        }
        *BEFORE.action.get() = Some(before);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        if libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()) != 0 {
            return false;
        }
    }
    BEFORE.installed.store(1, Relaxed);
    true
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid record; for SIGSEGV it has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let engine = engine::find(|engine| engine.guarded.is_some_and(|pool| pool.owns(address)));
    if let Some(pool) = engine.and_then(|engine| engine.guarded)
        && let Some((slot, meta, by)) = pool.nearest(address)
    {
        let write = is_write(context);
        let what = match meta.life {
            Life::Freed if by == 0 => What::AfterFree(write),
            _ => What::OutOfBounds(write),
        };
        let mut op = Operation::new();
        report::write(&mut op.text, what, address, slot, &meta, by, &here(context));
        op.send(engine.map_or_else(Default::default, |engine| engine.config.report));
    }
    // SAFETY: written before this handler was installed, never again.
    let before = unsafe { *BEFORE.action.get() };
    pass_on(before, signal, info, context);
}

/// Runs the handler before, or restores what was there so that the fault comes again.
fn pass_on(
    before: Option<libc::sigaction>,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let Some(before) = before else { return };
    let handler = before.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: restores the default; the instruction faults again and the process ends.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    } else if before.sa_flags & libc::SA_SIGINFO != 0 {
        type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: with this flag the address is that of such a function.
        let handler: Handler = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag the address is that of such a function.
        let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

/// Who runs here, from the instruction that faulted on.
fn here(context: *mut libc::c_void) -> Who {
    let mut frames = [0; depot::MAX_FRAMES];
    let n = depot::capture(0, &mut frames);
    let at = instruction(context);
    let known = frames.iter().take(n).position(|frame| Some(*frame) == at);
    let skip = known.unwrap_or(0);
    frames.copy_within(skip..n, 0);
    Who {
        track: Track {
            caller: frames[0] as u64,
            stack: None,
            cpu: cpu(),
            thread: thread_id(),
            time_ns: now_ns(),
        },
        frames,
        len: n - skip,
    }
}

/// Address of the instruction that faulted, where that is known.
#[cfg(target_arch = "x86_64")]
fn instruction(context: *mut libc::c_void) -> Option<usize> {
    // SAFETY: the kernel passes a valid context to a handler with SA_SIGINFO.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers
        .get(libc::REG_RIP as usize)
        .map(|ip| ip.cast_unsigned() as usize)
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction(_: *mut libc::c_void) -> Option<usize> {
    None
}

/// Whether the access was a write, where that is known.
#[cfg(target_arch = "x86_64")]
fn is_write(context: *mut libc::c_void) -> Option<bool> {
    // SAFETY: as above.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers
        .get(libc::REG_ERR as usize)
        .map(|code| code & 2 != 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn is_write(_: *mut libc::c_void) -> Option<bool> {
    None
}
