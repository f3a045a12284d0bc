//! The words as a symbol of thread-local storage, found by the initial-exec model: its distance
//! from the thread pointer is in the global offset table, filled in when the object is loaded.
//!
//! Source of truth: "ELF Handling For Thread-Local Storage" (Drepper), the ABIs of x86-64 and
//! AArch64. In an executable the linker replaces the table's entry by a constant. A shared
//! object that has it may be loaded at the start of a program; later only while the loader has
//! 32 bytes of static storage to spare. The part for AArch64 has run under
//! qemu-user only.

use super::State;
use std::arch::{asm, global_asm};

// Offset of the row, offset of a heap's rows, slot, state, whether a stack is being walked. Zero in a new thread.
global_asm!(
    ".pushsection .tbss.slabcore_slot,\"awT\",@nobits",
    ".globl __slabcore_slot_words",
    ".hidden __slabcore_slot_words",
    ".type __slabcore_slot_words, @object",
    ".size __slabcore_slot_words, 32",
    ".p2align 4",
    "__slabcore_slot_words:",
    ".zero 32",
    ".popsection",
);

const HEAP_OFFSET: usize = 8;
const SLOT: usize = 16;
const STATE: usize = 20;
const CAPTURING: usize = 24;

/// Address of this thread's row among `rows`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::slot) fn row(rows: usize) -> usize {
    let mut row = rows;
    // SAFETY: reads a word of this thread that is always there; the sum is the caller's to use.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + __slabcore_slot_words@GOTTPOFF]",
            "add {row}, qword ptr fs:[{at}]",
            at = out(reg) _,
            row = inout(reg) row,
            options(pure, readonly, nostack),
        );
    }
    row
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::slot) fn heap_offset() -> usize {
    let offset: usize;
    // SAFETY: reads a word of this thread that is always there.
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + __slabcore_slot_words@GOTTPOFF]",
            "mov {at}, qword ptr fs:[{at} + {word}]",
            at = out(reg) offset,
            word = const HEAP_OFFSET,
            options(pure, readonly, nostack),
        );
    }
    offset
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(in crate::slot) fn heap_offset() -> usize {
    // SAFETY: a word of this thread, which no reference is to.
    unsafe { ((words() + HEAP_OFFSET) as *const usize).read() }
}

/// As for x86-64.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(in crate::slot) fn row(rows: usize) -> usize {
    let words = words();
    // SAFETY: as above.
    let offset = unsafe { (words as *const usize).read() };
    rows + offset
}

/// Address of this thread's words.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn words() -> usize {
    let at: usize;
    // SAFETY: reads the thread pointer, which the ABI keeps at its own address.
    unsafe {
        asm!(
            "mov {at}, qword ptr fs:[0]",
            "add {at}, qword ptr [rip + __slabcore_slot_words@GOTTPOFF]",
            at = out(reg) at,
            options(pure, readonly, nostack),
        );
    }
    at
}

/// Address of this thread's words.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn words() -> usize {
    let at: usize;
    // SAFETY: reads the thread pointer and an entry of the table.
    unsafe {
        asm!(
            "adrp {offset}, :gottprel:__slabcore_slot_words",
            "ldr {offset}, [{offset}, :gottprel_lo12:__slabcore_slot_words]",
            "mrs {at}, tpidr_el0",
            "add {at}, {at}, {offset}",
            offset = out(reg) _,
            at = out(reg) at,
            options(pure, readonly, nostack),
        );
    }
    at
}

#[inline(always)]
pub(in crate::slot) fn slot() -> u32 {
    // SAFETY: a word of this thread, which no reference is to.
    unsafe { ((words() + SLOT) as *const u32).read() }
}

pub(in crate::slot) fn state() -> State {
    // SAFETY: as in `slot`.
    match unsafe { ((words() + STATE) as *const u32).read() } {
        0 => State::New,
        1 => State::Asking,
        2 => State::Owner,
        _ => State::Without,
    }
}

pub(in crate::slot) fn set_state(state: State) {
    // SAFETY: as in `slot`.
    unsafe { ((words() + STATE) as *mut u32).write(state as u32) };
}

pub(in crate::slot) fn is_capturing() -> bool {
    // SAFETY: as in `slot`.
    unsafe { ((words() + CAPTURING) as *const u32).read() != 0 }
}

pub(in crate::slot) fn set_capturing(on: bool) {
    // SAFETY: as in `slot`.
    unsafe { ((words() + CAPTURING) as *mut u32).write(u32::from(on)) };
}

pub(in crate::slot) fn set_slot(slot: u32, offset: usize, heap_offset: usize) {
    // SAFETY: as in `slot`.
    unsafe {
        ((words() + SLOT) as *mut u32).write(slot);
        ((words() + HEAP_OFFSET) as *mut usize).write(heap_offset);
        (words() as *mut usize).write(offset);
    }
}
