//! Compressed streams: told from their first bytes, unpacked within limits.
//!
//! What comes in may be hostile: see `bomb.rs` for what bounds the output.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::bomb::{Counted, Limited, Limits};

/// Bytes the xz decoder may take; `xz -9` needs 65 MiB, and the format allows a
/// few hundred bytes to ask for 4 GiB.
const MAX_XZ: u64 = 256 << 20;

/// How a file is packed, told from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// xz.
    Xz,
}

/// Bytes of the longest magic number.
const MAGIC: usize = 6;

impl Packing {
    /// Tells the packing from the magic number.
    pub fn of(head: &[u8]) -> Self {
        if head.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else if head.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Self::Xz
        } else {
            Self::Plain
        }
    }
}

/// Decompresses a stream according to its first bytes, twice at the most
/// (a packed file inside a packed file is somebody's trick).
pub fn unpack<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    // A pipe may give its first bytes one by one.
    let mut head = Vec::with_capacity(MAGIC);
    reader.by_ref().take(MAGIC as u64).read_to_end(&mut head)?;
    let packing = Packing::of(&head);
    let reader: Box<dyn BufRead + 'a> = Box::new(Cursor::new(head).chain(reader));
    let (reader, consumed) = Counted::new(reader);
    let decoder: Box<dyn Read + 'a> = match packing {
        Packing::Plain => return Ok(Box::new(reader)),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
        Packing::Xz => {
            let stream = Stream::new_stream_decoder(MAX_XZ, CONCATENATED)?;
            Box::new(XzDecoder::new_stream(reader, stream))
        }
    };
    let limited = Limited::new(decoder, consumed, Limits::DEFAULT);
    Ok(Box::new(BufReader::with_capacity(1 << 16, limited)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packing_is_told_from_its_first_bytes() {
        use std::io::Write as _;
        let text = b"slabinfo - version: 2.1\n".repeat(100);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        xz.write_all(&text).unwrap();
        let packed = [
            gz.finish().unwrap(),
            xz.finish().unwrap(),
            zstd::encode_all(&text[..], 1).unwrap(),
            text.clone(),
        ];
        for bytes in packed {
            let mut out = Vec::new();
            unpack(&bytes[..]).unwrap().read_to_end(&mut out).unwrap();
            assert_eq!(out, text);
        }
    }

    /// An xz stream whose header asks for a dictionary of another size.
    fn xz_with_dictionary(text: &[u8], size_code: u8) -> Vec<u8> {
        use std::io::Write as _;
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
        xz.write_all(text).unwrap();
        let mut bytes = xz.finish().unwrap();
        // The header of the first block follows the 12 bytes of the stream's.
        let end = 12 + (usize::from(bytes[12]) + 1) * 4 - 4;
        bytes[16] = size_code;
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[12..end]);
        bytes[end..end + 4].copy_from_slice(&crc.sum().to_le_bytes());
        bytes
    }

    #[test]
    fn an_xz_header_cannot_ask_for_a_gigabyte() {
        let text = b"slabinfo - version: 2.1\n";
        let unpacked = |code| -> io::Result<Vec<u8>> {
            let mut out = Vec::new();
            unpack(&xz_with_dictionary(text, code)[..])?.read_to_end(&mut out)?;
            Ok(out)
        };
        // 64 MiB, as `xz -9` writes it; then 1 GiB and the format's largest.
        assert_eq!(unpacked(28).unwrap(), text);
        assert!(unpacked(36).is_err());
        assert!(unpacked(40).is_err());
    }
}
