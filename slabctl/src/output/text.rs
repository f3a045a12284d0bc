//! Text that is safe on a terminal: whatever a capture or a kernel module put
//! into a name, no control character reaches the screen.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters by `\x..` or `\u{..}`.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !c.is_control() => out.push(c),
            c if u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

/// A message on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let joined = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    safe(&joined).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(safe("dentry"), "dentry");
        assert_eq!(safe("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(safe("\u{9b}31m"), "\\x9b31m");
        assert_eq!(one_line("a\nb\r\n c"), "a b c");
    }
}
