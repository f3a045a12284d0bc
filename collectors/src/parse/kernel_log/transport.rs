//! What programs put before a line of the kernel log, taken off.
//!
//! Purpose: dmesg, journalctl, syslog, /dev/kmsg, serial consoles and mail
//! programs each add a prefix; reports are told from what is left. Source of
//! truth: kernel/printk/printk.c (time, caller id, record format), dmesg(1)
//! (`-T`, `-x`, ISO times), syslog as found in public threads. It reads no
//! report and joins no lines.

use crate::parse::clean;

/// How far into a line the word `kernel:` of a syslog prefix may be.
const SYSLOG: usize = 128;

/// One line without its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line<'a> {
    /// The time as printed: seconds since boot, or a date.
    pub stamp: Option<&'a str>,
    /// Who printed it, as `T151472` (a task) or `C42` (a CPU in an interrupt).
    pub caller: Option<&'a str>,
    /// There was a log prefix. Quote marks of mails do not count: wrapped
    /// lines have them too.
    pub prefixed: bool,
    /// A record of /dev/kmsg, which writes odd characters as `\\x09`.
    pub escaped: bool,
    /// The rest, without blanks at its end.
    pub text: &'a str,
}

/// The text of a record of /dev/kmsg as it was printed; line ends become blanks.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 4);
        if let Some(byte) = code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            let c = char::from(byte);
            out.push(if c.is_ascii() && c != '\n' { c } else { ' ' });
            rest = &rest[at + 4..];
        } else {
            out.push_str("\\x");
            rest = &rest[at + 2..];
        }
    }
    out.push_str(rest);
    out
}

/// Takes quote marks and log prefixes off a line.
pub fn strip(line: &str) -> Line<'_> {
    let mut found = Line::default();
    let mut rest = clean::unquoted(line.trim_end());
    let mut syslog = false;
    // Each turn takes something off; real lines have at most five parts.
    for _ in 0..8 {
        let text = rest.trim_start();
        let inner = match text.as_bytes().first() {
            Some(b'[') => bracket(text, &mut found),
            Some(b'<') => priority(text),
            Some(b'0'..=b'9') => record(text, &mut found)
                .or_else(|| iso_time(text, &mut found))
                .or_else(|| after_kernel(text, &mut syslog)),
            Some(b'A'..=b'Z' | b'a'..=b'z') => {
                facility(text).or_else(|| after_kernel(text, &mut syslog))
            }
            _ => None,
        };
        let Some(inner) = inner else { break };
        found.prefixed = true;
        rest = inner;
    }
    found.text = rest.strip_prefix(' ').unwrap_or(rest);
    found
}

/// `[  123.456789]`, `[T12]`, `[   C3]`, `[Wed Feb 15 11:08:16 2023]`.
fn bracket<'a>(text: &'a str, found: &mut Line<'a>) -> Option<&'a str> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let inner = inner.trim();
    if is_seconds(inner) || is_date(inner) {
        // A second time, put before the first by another program, is less exact.
        found.stamp = Some(inner);
    } else if is_caller(inner) {
        found.caller = Some(inner);
    } else {
        return None;
    }
    Some(rest)
}

fn is_seconds(text: &str) -> bool {
    let dots = text.bytes().filter(|b| *b == b'.').count();
    dots == 1 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.len() > 2
}

fn is_caller(text: &str) -> bool {
    let digits = text.strip_prefix(['T', 'C']);
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// `Wed Feb 15 11:08:16 2023` or `2023-02-15 11:08:16`.
fn is_date(text: &str) -> bool {
    let clock = |word: &str| {
        word.split(':').count() == 3
            && word
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b':' | b'.' | b','))
    };
    let mut words = text.split_ascii_whitespace();
    let count = words.clone().count();
    (count == 2 || count == 5) && words.any(clock)
}

/// `<6>`
fn priority(text: &str) -> Option<&str> {
    let (number, rest) = text.strip_prefix('<')?.split_once('>')?;
    let known = (1..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    known.then_some(rest)
}

/// `6,339,5140900,-,caller=T12;`: a record of /dev/kmsg.
fn record<'a>(text: &'a str, found: &mut Line<'a>) -> Option<&'a str> {
    let (head, rest) = text.split_once(';')?;
    let mut fields = head.split(',');
    for _ in 0..3 {
        let field = fields.next()?;
        if field.is_empty() || !field.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
    }
    let flags = fields.next()?;
    if flags.len() > 2 {
        return None;
    }
    found.stamp = head.split(',').nth(2);
    found.caller = fields.find_map(|field| field.strip_prefix("caller="));
    found.escaped = true;
    Some(rest)
}

/// `2023-02-15T11:08:16,123456+01:00 `
fn iso_time<'a>(text: &'a str, found: &mut Line<'a>) -> Option<&'a str> {
    let (word, rest) = text.split_once(' ')?;
    let bytes = word.as_bytes();
    let shape = bytes.len() >= 19 && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':';
    if !shape {
        return None;
    }
    found.stamp = Some(word);
    Some(rest)
}

/// `kern  :err   : `, as `dmesg -x` prints it.
fn facility(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("kern")?.trim_start().strip_prefix(':')?;
    let (level, rest) = rest.split_once(": ")?;
    let level = level.trim();
    (level.len() <= 6 && level.bytes().all(|b| b.is_ascii_lowercase())).then_some(rest)
}

/// `Feb 15 11:08:16 host kernel: `, with any date and host; once a line.
fn after_kernel<'a>(text: &'a str, seen: &mut bool) -> Option<&'a str> {
    const WORD: &str = "kernel:";
    if *seen {
        return None;
    }
    let head = text
        .char_indices()
        .nth(SYSLOG)
        .map_or(text, |(at, _)| &text[..at]);
    let at = head.find(WORD)?;
    let own_word = at == 0 || text.as_bytes()[at - 1].is_ascii_whitespace();
    let rest = &text[at + WORD.len()..];
    if !own_word || !(rest.is_empty() || rest.starts_with([' ', '['])) {
        return None;
    }
    *seen = true;
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_prefix_goes_away() {
        for (prefix, stamp, caller) in [
            ("[  803.586639] ", Some("803.586639"), None),
            (
                "[ 3575.152632][T152037] ",
                Some("3575.152632"),
                Some("T152037"),
            ),
            ("[   47.637865][   C42] ", Some("47.637865"), Some("C42")),
            ("<6>[  803.586639] ", Some("803.586639"), None),
            ("6,339,5140900,-;", Some("5140900"), None),
            ("6,339,5140900,-,caller=C3;", Some("5140900"), Some("C3")),
            (
                "Oct 10 12:00:00 host kernel: [49689.329363] ",
                Some("49689.329363"),
                None,
            ),
            (
                "2023-10-10T12:00:00.000000+00:00 host kernel: ",
                Some("2023-10-10T12:00:00.000000+00:00"),
                None,
            ),
            (
                "2023-10-10T12:00:00,000000+00:00 ",
                Some("2023-10-10T12:00:00,000000+00:00"),
                None,
            ),
            (
                "[Wed Feb 15 11:08:16 2023] ",
                Some("Wed Feb 15 11:08:16 2023"),
                None,
            ),
            ("kern  :err   : [    4.857565] ", Some("4.857565"), None),
            ("kernel:[ 12.5] ", Some("12.5"), None),
            (
                "> > [   12.547809][T191552] ",
                Some("12.547809"),
                Some("T191552"),
            ),
            (">>>> | [ 1151.015141] ", Some("1151.015141"), None),
            ("  kernel: [67166.693658] ", Some("67166.693658"), None),
        ] {
            let text = "BUG kmalloc-16 (Not tainted): x";
            let line = format!("{prefix}{text}   ");
            let found = strip(&line);
            assert_eq!(found.text, text, "{prefix}");
            assert_eq!((found.stamp, found.caller), (stamp, caller), "{prefix}");
            assert!(found.prefixed);
        }
    }

    #[test]
    fn what_belongs_to_the_report_stays() {
        for text in [
            "[Right Redzone overwritten] 0x1-0x2",
            "[<c0103765>] dump_trace+0x1c1/0x1f1",
            "[c000001fefdef840] [c00000000035e9a8] print_trailer+0x278/0x2a0",
            "0x8555cd02-0x8555cd03 @offset=3330. First byte 0x0 instead of 0xcc",
            "000: 6b 6b 6b 2b",
            "8710: usb",
            "=====",
        ] {
            let found = strip(text);
            assert_eq!(
                found,
                Line {
                    text,
                    ..Line::default()
                }
            );
        }
        assert_eq!(strip("> was overwritten").text, "was overwritten");
        assert!(!strip("> was overwritten").prefixed);
        assert_eq!(strip("[Wed Feb 15 11:08:16 2023]").text, "");
        // Frames keep their blank or TAB.
        assert_eq!(strip("[1.000000] \tfoo+0x1/0x2").text, "\tfoo+0x1/0x2");
    }

    #[test]
    fn records_are_unescaped() {
        assert_eq!(unescape(r"\x09foo+0x1/0x2\x0a"), "\tfoo+0x1/0x2 ");
        assert_eq!(unescape(r"a\x5cb \xzz \x"), r"a\b \xzz \x");
        assert!(strip(r"3,1,2,-;\x09foo").escaped);
        assert!(!strip(r"[1.0] \x09foo").escaped);
    }

    proptest! {
        #[test]
        fn any_text_is_unescaped(text in r"(\\x[0-9a-fé]{0,3}|é|x){0,12}") {
            prop_assert!(unescape(&text).len() <= text.len());
        }

        #[test]
        fn any_line_is_survived(line in "\\PC{0,80}") {
            prop_assert!(line.contains(strip(&line).text));
        }
    }
}
