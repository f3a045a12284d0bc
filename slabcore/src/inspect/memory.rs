//! Memory that is not ours: of another process, or of one that is gone.
//!
//! A read gives what was there at some moment of it, or says how much of it there was. What
//! it does not do: believe anything.

use super::Refusal;

/// A piece to be read.
#[derive(Debug)]
pub struct Part<'b> {
    /// Address of the first byte.
    pub at: u64,
    /// Where the bytes go.
    pub into: &'b mut [u8],
    /// How many came; the rest is left as it was.
    pub got: usize,
}

impl<'b> Part<'b> {
    /// A piece of which nothing was read.
    pub const fn new(at: u64, into: &'b mut [u8]) -> Self {
        Self { at, into, got: 0 }
    }

    /// All of it came.
    pub const fn whole(&self) -> bool {
        self.got == self.into.len()
    }
}

/// Somebody else's memory.
pub trait Memory: std::fmt::Debug {
    /// Reads pieces, in as few steps as possible.
    fn read(&self, parts: &mut [Part<'_>]);

    /// It may change between two reads.
    fn is_live(&self) -> bool;

    /// Reads all of one piece.
    fn get(&self, at: u64, into: &mut [u8]) -> Result<(), Refusal> {
        let mut part = [Part::new(at, into)];
        self.read(&mut part);
        let [part] = part;
        if part.whole() {
            Ok(())
        } else {
            Err(Refusal::Memory(at))
        }
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    fn read(&self, parts: &mut [Part<'_>]) {
        (**self).read(parts);
    }
    fn is_live(&self) -> bool {
        (**self).is_live()
    }
}

impl<M: Memory + ?Sized> Memory for Box<M> {
    fn read(&self, parts: &mut [Part<'_>]) {
        (**self).read(parts);
    }
    fn is_live(&self) -> bool {
        (**self).is_live()
    }
}

/// A number at a place of copied bytes. `Shape` has seen to it that every place is inside.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = at.checked_add(8).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

/// The same of 32 bits.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = at.checked_add(4).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

/// The same of 16 bits.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let part = at.checked_add(2).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok())
        .map_or(0, u16::from_ne_bytes)
}
