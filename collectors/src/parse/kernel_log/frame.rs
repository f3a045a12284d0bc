//! One line of a stack, in the forms of every architecture and tool.
//!
//! Source of truth: kernel/kallsyms.c (`%pS`), the stack dumps of x86, arm,
//! arm64 and powerpc, scripts/decode_stacktrace.sh. Only asked where a stack
//! is expected: plain words look like the frames of old kernels.

use super::report::Frame;

/// Reads a frame; `None` for anything else.
pub(super) fn read(text: &str) -> Option<Frame> {
    let mut rest = text.trim();
    let mut guess = false;
    // `[<c0103765>] ? foo+0x1/0x2`, `[c000...] [c000...] foo+0x1/0x2 (unreliable)`
    loop {
        if let Some(after) = rest.strip_prefix("? ") {
            guess = true;
            rest = after.trim_start();
        } else if let Some(after) = address(rest) {
            rest = after.trim_start();
        } else {
            break;
        }
    }
    if let Some(caller) = unwound(rest) {
        rest = caller;
    }
    guess |= rest.ends_with("(unreliable)");
    let symbol = symbol(rest)?;
    Some(Frame {
        symbol: super::item::clip(symbol),
        guess,
    })
}

/// What follows an address in brackets.
fn address(text: &str) -> Option<&str> {
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    let digits = inner.strip_prefix("0x").unwrap_or(inner);
    let known = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    known.then_some(rest)
}

/// The caller in `(callee) from [<80109>] (caller+0x11/0x14)` and
/// `callee from caller+0x11/0x14`.
fn unwound(text: &str) -> Option<&str> {
    let (callee, rest) = text.split_once(" from ")?;
    if callee.contains(' ') {
        return None;
    }
    let rest = rest.trim_start();
    let rest = address(rest).unwrap_or(rest).trim_start();
    match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')').map(|(inner, _)| inner),
        None => Some(rest),
    }
}

/// The symbol at the start of `text`, with its offset and module.
fn symbol(text: &str) -> Option<&str> {
    let first = text.split([' ', '\t']).next()?;
    let known = match first.split_once('+') {
        Some((name, offset)) => is_name(name) && is_offset(offset),
        None if is_raw(first) => true,
        // `foo (mm/slub.c:12)`, as decode_stacktrace.sh writes it.
        None => is_name(first) && is_place(text[first.len()..].trim_start()),
    };
    if !known {
        return None;
    }
    let module = text[first.len()..].trim_start();
    let end = match module.strip_prefix('[').and_then(|m| m.find(']')) {
        Some(at) if first.contains('+') => {
            let start = text.len() - module.len();
            let name = module.get(1..=at).unwrap_or_default();
            if is_module(name) {
                start + at + 2
            } else {
                first.len()
            }
        }
        _ => first.len(),
    };
    Some(&text[..end])
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'-' | b'<' | b'>' | b':')
        })
}

/// `0x12/0x34`, `12` (decimal, as some tools rewrite it).
fn is_offset(text: &str) -> bool {
    let (offset, size) = text.split_once('/').unwrap_or((text, "0"));
    let number = |s: &str| {
        let digits = s.strip_prefix("0x").unwrap_or(s);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    number(offset) && number(size)
}

fn is_raw(text: &str) -> bool {
    let digits = text.strip_prefix("0x");
    digits.is_some_and(|d| d.len() >= 4 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_place(text: &str) -> bool {
    let inner = text.strip_prefix('(').unwrap_or(text);
    let place = inner.split([' ', ')']).next().unwrap_or_default();
    place.split_once(':').is_some_and(|(file, line)| {
        file.contains('.') && line.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// `smc`, `ext4 0123abcd` (with a build id), and flags such as `slabbug(OE)`.
fn is_module(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b" _-()+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_architecture() {
        for (text, symbol, guess) in [
            ("\t__slab_alloc+0xa4/0xf0", "__slab_alloc+0xa4/0xf0", false),
            (
                " smc_release+0x19a/0x230 [smc]",
                "smc_release+0x19a/0x230 [smc]",
                false,
            ),
            (
                " [<c0103765>] dump_trace+0x1c1/0x1f1",
                "dump_trace+0x1c1/0x1f1",
                false,
            ),
            ("? kfree+0x276/0x2b0", "kfree+0x276/0x2b0", true),
            (
                "[c000001fefdef800] [c000000000644278] dump_stack+0xec/0x144 (unreliable)",
                "dump_stack+0xec/0x144",
                true,
            ),
            (
                "[<801090a5>] (show_stack) from [<805da2fb>] (dump_stack_lvl+0x4d/0x7c)",
                "dump_stack_lvl+0x4d/0x7c",
                false,
            ),
            (
                "unwind_backtrace from show_stack+0xb/0xc",
                "show_stack+0xb/0xc",
                false,
            ),
            ("inet_twsk_alloc+60", "inet_twsk_alloc+60", false),
            ("kfree (mm/slub.c:4798 mm/slub.c:5658)", "kfree", false),
            (
                "memcpy+0x20/0x60 mm/kasan/common.c:105",
                "memcpy+0x20/0x60",
                false,
            ),
            ("[<b7f4e410>] 0xb7f4e410", "0xb7f4e410", false),
            (
                "__slab_alloc.isra.0+0x40/0x60",
                "__slab_alloc.isra.0+0x40/0x60",
                false,
            ),
        ] {
            let frame = read(text).unwrap();
            assert_eq!((&*frame.symbol, frame.guess), (symbol, guess), "{text}");
        }
        assert_eq!(read(" foo.part.15+0x1/0x2 [m]").unwrap().function(), "foo");
    }

    #[test]
    fn other_lines_are_no_frames() {
        for text in [
            "",
            "RAX: ffffffffffffffda RBX: 00007fff7f4ee66c",
            "usb 1-1: device descriptor read/8, error -71",
            "Hardware name: QEMU",
            "dup_mm at kernel/fork.c:1344",
            "(inlined by) foo at a.c:1",
            "<TASK>",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
