//! A writer that lets no control character through but the end of a line.
//!
//! Names come from kernel modules and from captures; no name may drive the
//! terminal it is shown on.

use std::io::{self, Write};

use crate::output::text;

/// Writes text with its control characters made visible.
pub(crate) struct Printable<'a>(pub(crate) &'a mut dyn Write);

impl Write for Printable<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        // Formatted text arrives in whole strings, so no character is cut.
        let shown = String::from_utf8_lossy(buf);
        for (i, line) in shown.split('\n').enumerate() {
            if i > 0 {
                self.0.write_all(b"\n")?;
            }
            self.0.write_all(text::safe(line).as_bytes())?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_line_passes() {
        let mut out = Vec::new();
        let mut to = Printable(&mut out);
        writeln!(to, "a\x1b[2J\rb\u{9b}").unwrap();
        write!(to, "c").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\\x1b[2J\\x0db\\x9b\nc");
    }
}
