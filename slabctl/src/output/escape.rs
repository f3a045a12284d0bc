//! Escapes in JSON text the control characters that JSON itself does not.
//!
//! RFC 8259 asks for escapes below U+0020 only, and serde_json stops there.
//! U+007F to U+009F are control characters too (U+009B starts a terminal
//! command), and cache names come from files that anybody may have written.
//! Outside strings JSON text is ASCII without DEL, so a replacement at the
//! level of bytes always falls inside a string and keeps its value.

use std::io::{self, Write};

/// First byte, in UTF-8, of U+0080 to U+00BF; never a later byte of a character.
const LEAD: u8 = 0xC2;
const DEL: u8 = 0x7F;

/// Passes JSON text on to `out`, with U+007F to U+009F written as `\u00xx`.
pub(super) struct Escaping<W> {
    out: W,
    /// A lead byte came last and was not passed on yet.
    held: bool,
}

impl<W: Write> Escaping<W> {
    /// Writes to `out`, many small pieces at a time.
    pub(super) const fn new(out: W) -> Self {
        Self { out, held: false }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut rest = text;
        while let Some(first) = rest.first() {
            if self.held {
                self.held = false;
                if (0x80..=0x9F).contains(first) {
                    write!(self.out, "\\u{first:04x}")?;
                    rest = &rest[1..];
                    continue;
                }
                self.out.write_all(&[LEAD])?;
            }
            let plain = rest.iter().position(|b| *b == LEAD || *b == DEL);
            let (before, from) = rest.split_at(plain.unwrap_or(rest.len()));
            self.out.write_all(before)?;
            rest = match from.split_first() {
                Some((&LEAD, after)) => {
                    self.held = true;
                    after
                }
                Some((_, after)) => {
                    self.out.write_all(b"\\u007f")?;
                    after
                }
                None => from,
            };
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, piece: usize) -> String {
        let mut writer = Escaping::new(Vec::new());
        for part in text.as_bytes().chunks(piece) {
            writer.write_all(part).unwrap();
        }
        String::from_utf8(writer.out).unwrap()
    }

    #[test]
    fn control_characters_are_escaped_wherever_the_text_is_cut() {
        let text = "a\u{7f}b\u{80}\u{9b}31m\u{9f}\u{a0}\u{bf}é\u{85}";
        for piece in 1..=text.len() {
            assert_eq!(
                escaped(text, piece),
                "a\\u007fb\\u0080\\u009b31m\\u009f\u{a0}\u{bf}é\\u0085"
            );
        }
    }

    #[test]
    fn plain_text_is_not_touched() {
        assert_eq!(escaped("{\"größe\":1}\n", 5), "{\"größe\":1}\n");
    }
}
