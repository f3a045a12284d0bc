//! A limit on what a compressed stream may unpack to.
//!
//! A few kilobytes of zstd or xz can stand for terabytes. The limit grows with
//! the compressed bytes that were consumed, so that large captures pass and a
//! bomb ends after a moment. It does not decompress: `archive` does.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// How much may come out of a decoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes that are always allowed.
    pub floor: u64,
    /// Bytes allowed beyond those for each compressed byte.
    pub ratio: u64,
    /// Bytes never exceeded.
    pub cap: u64,
}

impl Limits {
    /// Deflate cannot exceed 1032 to 1, so only the cap holds for gzip.
    pub const DEFAULT: Self = Self {
        floor: 64 << 20,
        ratio: 2000,
        cap: 16 << 30,
    };

    fn allowed(self, consumed: u64) -> u64 {
        let grown = self
            .floor
            .saturating_add(self.ratio.saturating_mul(consumed));
        grown.min(self.cap)
    }

    fn error(self, produced: u64) -> io::Error {
        let why = if produced >= self.cap {
            format!("unpacks to more than {} MiB", self.cap >> 20)
        } else {
            format!(
                "unpacks to more than {} MiB and {} times its packed size",
                self.floor >> 20,
                self.ratio
            )
        };
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    }
}

/// Counts the bytes that are consumed of a stream.
pub(super) struct Counted<R> {
    inner: R,
    consumed: Rc<Cell<u64>>,
}

impl<R> Counted<R> {
    /// The counting stream, and the count.
    pub fn new(inner: R) -> (Self, Rc<Cell<u64>>) {
        let consumed = Rc::new(Cell::new(0));
        let count = Rc::clone(&consumed);
        (Self { inner, consumed }, count)
    }

    fn count(&self, bytes: usize) {
        let sum = self.consumed.get().saturating_add(bytes as u64);
        self.consumed.set(sum);
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.count(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.count(amount);
    }
}

/// Ends a decoder that gives more than its input can honestly hold.
pub(super) struct Limited<R> {
    decoder: R,
    consumed: Rc<Cell<u64>>,
    produced: u64,
    limits: Limits,
}

impl<R> Limited<R> {
    pub fn new(decoder: R, consumed: Rc<Cell<u64>>, limits: Limits) -> Self {
        Self {
            decoder,
            consumed,
            produced: 0,
            limits,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buf)?;
        self.produced = self.produced.saturating_add(read as u64);
        if self.produced > self.limits.allowed(self.consumed.get()) {
            return Err(self.limits.error(self.produced));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Reads 1 MiB of zeros, packed with gzip to about a kilobyte.
    fn read_with(limits: Limits) -> io::Result<u64> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(&vec![0; 1 << 20]).unwrap();
        let bytes = gz.finish().unwrap();
        let (reader, consumed) = Counted::new(&bytes[..]);
        let decoder = flate2::bufread::MultiGzDecoder::new(reader);
        io::copy(
            &mut Limited::new(decoder, consumed, limits),
            &mut io::sink(),
        )
    }

    #[test]
    fn what_fits_passes_to_the_last_byte() {
        let (ratio, cap) = (0, 1 << 30);
        let floor = 1 << 20;
        assert_eq!(read_with(Limits { floor, ratio, cap }).unwrap(), 1 << 20);
        let floor = floor - 1;
        assert!(read_with(Limits { floor, ratio, cap }).is_err());
        // Each compressed byte allows more: gzip gives about 1000 for one.
        let floor = 64 << 10;
        let ratio = 2000;
        assert!(read_with(Limits { floor, ratio, cap }).is_ok());
    }

    #[test]
    fn each_limit_is_named() {
        let text = |limits| read_with(limits).unwrap_err().to_string();
        let (floor, ratio, cap) = (1 << 20, 2000, 0);
        assert_eq!(
            text(Limits { floor, ratio, cap }),
            "unpacks to more than 0 MiB"
        );
        let (floor, ratio, cap) = (0, 10, 1 << 30);
        let said = text(Limits { floor, ratio, cap });
        assert_eq!(
            said,
            "unpacks to more than 0 MiB and 10 times its packed size"
        );
    }
}
