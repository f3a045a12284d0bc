//! What `--debug` says, understood before the program runs.
//!
//! The library would say in a line what means nothing to it, and run the program without.

use slabcore::debug::flags::DebugOptions;
use slabcore::heap::sizes::NAMES;

use crate::fail::Failure;

/// Refuses a text with letters that mean nothing, or that is for no class of sizes.
pub(super) fn check(text: &str) -> Result<(), Failure> {
    let options = DebugOptions::parse(text);
    if let Some(unknown) = options.unknown().next() {
        let letter = unknown.letter;
        let error = format!("--debug {text}: {letter:?} is no flag");
        return Err(Failure::usage(error).hint("there are F, Z, P, U, T, A, and O and -"));
    }
    if !{ NAMES.iter().skip(1) }.any(|name| options.flags_for(name).is_some()) {
        let error = format!("--debug {text} names no class of sizes");
        return Err(
            Failure::usage(error).hint("they are kmalloc-8, kmalloc-16, kmalloc-32 and so on")
        );
    }
    Ok(())
}

/// What the library is told; for leaks whatever is debugged keeps who allocated it.
pub(super) fn option(text: Option<&str>, leaks: bool) -> Option<String> {
    let text = match text {
        Some(text) if leaks => text
            .split(';')
            .map(with_tracks)
            .collect::<Vec<_>>()
            .join(";"),
        Some(text) => text.to_owned(),
        None if leaks => "U".to_owned(),
        None => return None,
    };
    Some(text)
}

/// A block of the option with the letter U, unless it has it by another word, or is for nothing.
fn with_tracks(block: &str) -> String {
    let (letters, list) = block.split_once(',').unwrap_or((block, ""));
    if letters.is_empty() || letters.contains(['u', 'U', '-']) {
        return block.to_owned();
    }
    let comma = if list.is_empty() { "" } else { "," };
    format!("{letters}U{comma}{list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_refused() {
        for fine in [
            "",
            "FZPU",
            "fz",
            "FZPU,kmalloc-64",
            "P,kmalloc-1*;F",
            "-",
            "O",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        for wrong in ["XYZ", "F,dentry", "FZPU,kmalloc-65", "F,kmalloc-8;Q"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn leaks_are_told_by_who_allocated() {
        let of = |text| option(text, true).unwrap();
        assert_eq!(of(None), "U");
        assert_eq!(of(Some("FZ")), "FZU");
        assert_eq!(of(Some("FZPU,kmalloc-64")), "FZPU,kmalloc-64");
        assert_eq!(of(Some("F,kmalloc-64;P")), "FU,kmalloc-64;PU");
        assert_eq!(of(Some("")), "", "FZPU");
        assert_eq!(of(Some("-")), "-");
        assert_eq!(option(Some("FZ"), false).as_deref(), Some("FZ"));
        assert_eq!(option(None, false), None);
    }
}
