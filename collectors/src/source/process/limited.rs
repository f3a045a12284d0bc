//! Reading an ELF file that may be anything: no more of it than a limit, whatever it says.
//!
//! The cache of the `object` crate holds all that was ever read, as large as a file says that
//! its parts are; a sparse file may say terabytes.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use object::read::{ReadCache, ReadRef};

/// What a string counts as.
const STRING: u64 = 4096;

/// A file of which a bounded part is read.
#[derive(Debug)]
pub(super) struct Limited {
    data: ReadCache<File>,
    left: Cell<u64>,
}

impl Limited {
    /// At most so many bytes of a file.
    pub fn new(file: File, bytes: u64) -> Self {
        Self {
            data: ReadCache::new(file),
            left: Cell::new(bytes),
        }
    }

    fn pay(&self, bytes: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(())?);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for &'a Limited {
    fn len(self) -> Result<u64, ()> {
        (&self.data).len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.pay(size)?;
        (&self.data).read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.pay(STRING)?;
        (&self.data).read_bytes_at_until(range, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_allowed_however_large_a_part_is_said_to_be() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        let limited = Limited::new(file, 10_000);
        assert_eq!(limited.read_bytes_at(1 << 30, 1 << 38), Err(()));
        assert_eq!(
            limited.read_bytes_at(1 << 30, 6000).map(<[u8]>::len),
            Ok(6000)
        );
        assert!(limited.read_bytes_at_until(0..8, 0).is_err());
        assert_eq!(limited.read_bytes_at(0, 4001), Err(()));
        assert!(limited.read_bytes_at(0, 4000).is_ok() && limited.read_bytes_at(0, 1).is_err());
    }
}
