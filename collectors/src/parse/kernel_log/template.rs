//! Matches one line against the kernel's format string of it.
//!
//! Purpose: every line of a report is printed by one format string, so the
//! grammar here is a list of such strings. A line that ends early, wrapped by
//! a mail program or cut off, matches as far as it goes and says so. Source of
//! truth for the forms of pointers: lib/vsprintf.c (`%p`, hashed since 4.15).
//! It knows no report.
//!
//! | in a template | matches |
//! |---|---|
//! | a blank | any number of blanks, at least one |
//! | `{d}` | a decimal number, perhaps negative |
//! | `{x}` | hexadecimal digits, perhaps after `0x` |
//! | `{p}` | a pointer: `0x` and digits, `0x(____ptrval____)`, `0x  (null)` |
//! | `{w}` | characters up to the next blank |
//! | `{s}` | text up to what follows in the template, at its first place |
//! | `{r}` | the rest of the line |

/// Values in one template; the longest has seven.
const MAX: usize = 8;

/// What a template found, in its order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Values<'a> {
    list: [Option<&'a str>; MAX],
    /// The line went on to the end of the template.
    pub complete: bool,
}

impl<'a> Values<'a> {
    pub fn text(&self, at: usize) -> Option<&'a str> {
        self.list.get(at).copied().flatten()
    }

    /// `None` for negative numbers too: no count or age is negative.
    pub fn dec(&self, at: usize) -> Option<u64> {
        self.text(at)?.parse().ok()
    }

    pub fn signed(&self, at: usize) -> Option<i64> {
        self.text(at)?.parse().ok()
    }

    pub fn hex(&self, at: usize) -> Option<u64> {
        hex(self.text(at)?)
    }

    pub fn byte(&self, at: usize) -> Option<u8> {
        u8::try_from(self.hex(at)?).ok()
    }

    /// `None` also for a pointer that the kernel did not print.
    pub fn pointer(&self, at: usize) -> Option<u64> {
        let text = self.text(at)?;
        if text.ends_with("(null)") {
            return Some(0);
        }
        hex(text)
    }
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

/// Matches `text` against `template`. `None` unless the text before the first
/// value (or, without one, the first value and what follows it) is there.
pub(super) fn scan<'a>(template: &str, text: &'a str) -> Option<Values<'a>> {
    let mut values = Values::default();
    let mut found = 0;
    let mut pieces = pieces(template).peekable();
    let mut rest = text.trim_end();
    let mut literals = 0;
    while let Some(piece) = pieces.next() {
        let taken = match piece {
            Piece::Literal(literal) => match literal_end(literal, rest) {
                End::At(at) => {
                    literals += 1;
                    rest = &rest[at..];
                    continue;
                }
                End::Early if literals > 0 || found > 1 => return Some(values),
                // Only the blank before the first value is missing.
                End::Early if found == 0 && rest == literal.trim_end() => return Some(values),
                End::Early | End::No => return None,
            },
            Piece::Value(kind) => {
                let next = match pieces.peek() {
                    Some(Piece::Literal(literal)) => *literal,
                    _ => "",
                };
                value_end(kind, rest, next)
            }
        };
        match taken {
            End::At(at) if found < MAX => {
                values.list[found] = Some(rest[..at].trim());
                found += 1;
                rest = &rest[at..];
            }
            End::Early if literals > 0 => {
                // What is there of a text may be the whole of it.
                let part = rest.trim();
                if !part.is_empty() && found < MAX && matches!(piece, Piece::Value('s' | 'r')) {
                    values.list[found] = Some(part);
                }
                return Some(values);
            }
            _ => return None,
        }
    }
    values.complete = true;
    Some(values)
}

enum Piece<'t> {
    Literal(&'t str),
    Value(char),
}

fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('{')
            && let Some((kind, after)) = inner.split_once('}')
        {
            rest = after;
            return kind.chars().next().map(Piece::Value);
        }
        let (literal, after) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        rest = after;
        Some(Piece::Literal(literal))
    })
}

enum End {
    /// It matches, and ends here.
    At(usize),
    /// It matches as far as the text goes.
    Early,
    No,
}

/// Where `literal` ends at the start of `text`.
fn literal_end(literal: &str, text: &str) -> End {
    let bytes = text.as_bytes();
    let mut at = 0;
    for &wanted in literal.as_bytes() {
        let Some(&byte) = bytes.get(at) else {
            return End::Early;
        };
        if wanted == b' ' {
            if !byte.is_ascii_whitespace() {
                return End::No;
            }
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
        } else if wanted == byte {
            at += 1;
        } else {
            return End::No;
        }
    }
    End::At(at)
}

fn value_end(kind: char, text: &str, next: &str) -> End {
    if text.trim_start().is_empty() {
        return End::Early;
    }
    let run = |start: usize, wanted: fn(&u8) -> bool| {
        let digits = text.as_bytes()[start..].iter().take_while(|b| wanted(b));
        let end = start + digits.count();
        if end > start {
            End::At(end)
        } else if end == text.len() {
            End::Early
        } else {
            End::No
        }
    };
    match kind {
        'd' => run(usize::from(text.starts_with('-')), u8::is_ascii_digit),
        'x' => run(prefix_len(text), u8::is_ascii_hexdigit),
        'p' => pointer_end(text),
        'w' => run(0, |b| !b.is_ascii_whitespace()),
        's' => text_end(text, next),
        _ => End::At(text.len()),
    }
}

fn prefix_len(text: &str) -> usize {
    if text.starts_with("0x") { 2 } else { 0 }
}

fn pointer_end(text: &str) -> End {
    let start = prefix_len(text);
    let bytes = text.as_bytes();
    let digits = bytes[start..].iter().take_while(|b| b.is_ascii_hexdigit());
    let digits = digits.count();
    if digits > 0 {
        return End::At(start + digits);
    }
    let blanks = bytes[start..].iter().take_while(|b| **b == b' ').count();
    let inner = &text[start + blanks..];
    if inner.is_empty() {
        End::Early
    } else if let (true, Some(close)) = (inner.starts_with('('), inner.find(')')) {
        End::At(start + blanks + close + 1)
    } else {
        End::No
    }
}

/// Up to the first place where all of `next` follows.
fn text_end(text: &str, next: &str) -> End {
    if next.is_empty() {
        return End::At(text.len());
    }
    let first = next.as_bytes()[0];
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        let starts = byte == first || (first == b' ' && byte.is_ascii_whitespace());
        if starts && at > 0 && text.is_char_boundary(at) {
            match literal_end(next, &text[at..]) {
                End::At(_) => return End::At(at),
                End::Early | End::No => {}
            }
        }
    }
    End::Early
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLAB: &str = "Slab {p} objects={d} used={d} fp={p} flags={r}";

    #[test]
    fn a_line_gives_its_values() {
        let text = "Slab 0xffffea00  objects=25 used=11 fp=0x (null) flags=0x200(a|node=0)";
        let found = scan(SLAB, text).unwrap();
        assert!(found.complete);
        assert_eq!(found.pointer(0), Some(0xffff_ea00));
        assert_eq!((found.dec(1), found.dec(2)), (Some(25), Some(11)));
        assert_eq!(found.pointer(3), Some(0));
        assert_eq!(found.text(4), Some("0x200(a|node=0)"));
        let hidden = scan(SLAB, "Slab 0x(____ptrval____) objects=2 used=1").unwrap();
        assert_eq!((hidden.pointer(0), hidden.dec(2)), (None, Some(1)));
        assert!(!hidden.complete);
    }

    #[test]
    fn a_line_that_ends_early_says_so_wherever_it_ends() {
        let text = "Allocated in a b+0x1/0x2 [m] age=12 cpu=3 pid=45";
        let template = "Allocated in {s} age={d} cpu={d} pid={d}";
        assert_eq!(scan(template, text).unwrap().dec(3), Some(45));
        for end in 14..text.len() - 2 {
            let part = scan(template, &text[..end]).unwrap();
            assert!(!part.complete, "{}", &text[..end]);
        }
        assert!(scan(template, "Allocated by task 7").is_none());
        assert!(scan(template, "Allo").is_none());
    }

    #[test]
    fn a_template_may_begin_with_a_value() {
        let template = "{x}: redzone 1:{x}, redzone 2:{x}";
        let found = scan(
            template,
            "dd20cb64: redzone 1:0x170fc2a5, redzone 2:0x170fc200.",
        );
        assert_eq!(found.unwrap().hex(2), Some(0x170f_c200));
        assert!(scan(template, "dd20cb64").is_none());
        assert!(scan(template, "dd20cb64: something").is_none());
    }

    #[test]
    fn negative_numbers_are_no_counts() {
        let found = scan("node {d}: {d}", "node -1: -5").unwrap();
        assert_eq!((found.signed(0), found.dec(1)), (Some(-1), None));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,60}", tail in "[0-9a-f=x( )-]{0,40}") {
            for text in [text.clone(), format!("Slab 0x{text}"), format!("Slab 0x{tail}{text}")] {
                let _ = scan(SLAB, &text);
                let _ = scan("{s} at {w}: {x}", &text);
                let _ = scan("{p}-{p} @offset={d}", &text);
            }
        }
    }
}
