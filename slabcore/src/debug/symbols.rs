//! Names of code addresses of this process, for reports.
//!
//! Source of truth: the dynamic loader, by `dladdr`, which does not allocate. An exported
//! function becomes `name+0x1a [file]`, as in the kernel; anything else `file+0x1ca2b`, which
//! `addr2line -e file 0x1ca2b` resolves where the file has debug information.
//!
//! The loader takes a lock of its own, and holds it while it allocates. So names are looked up
//! when no lock of the engine is held: under one, [`Later`] writes a mark that [`expand`] replaces.
//!
//! What it does not do: read symbol tables or debug information, or know inlined functions.

use core::ffi::CStr;
use core::fmt::{self, Write};

use super::report::Symbolize;

/// Names addresses at once. Not to be used with a lock held.
#[derive(Clone, Copy, Debug)]
pub struct Symbols;

/// Marks addresses, to be named when no lock is held.
#[derive(Clone, Copy, Debug)]
pub struct Later;

const OPEN: char = '\u{2}';
const CLOSE: char = '\u{3}';

impl Symbolize for Later {
    fn write_symbol(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{OPEN}{address:x}{CLOSE}")
    }
}

impl Symbolize for Symbols {
    fn write_symbol(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        // A return address may already be that of the next function.
        let Some(info) = look_up(address.wrapping_sub(1)) else {
            return write!(out, "0x{address:x}");
        };
        let file = file_name(&info);
        if info.dli_sname.is_null() {
            let offset = address.wrapping_sub(info.dli_fbase as u64);
            return write!(out, "{file}+0x{offset:x}");
        }
        // SAFETY: a name of a loaded object is a string that lives as long as the object.
        let name = unsafe { CStr::from_ptr(info.dli_sname) };
        let offset = address.wrapping_sub(info.dli_saddr as u64);
        let name = name.to_str().unwrap_or("?");
        write!(out, "{name}+0x{offset:x} [{file}]")
    }
}

fn look_up(address: u64) -> Option<libc::Dl_info> {
    // SAFETY: an all-zero record is valid, and the call fills it for any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let found = libc::dladdr(address as usize as *const _, &raw mut info) != 0;
        (found && !info.dli_fname.is_null() && !info.dli_fbase.is_null()).then_some(info)
    }
}

/// The last part of the file's path.
fn file_name(info: &libc::Dl_info) -> &str {
    // SAFETY: not null (`look_up`), and lives as long as the loaded object.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = path.to_str().unwrap_or("?");
    path.rsplit('/').next().unwrap_or(path)
}

/// Writes a text with its marks replaced. Not to be called with a lock held.
pub fn expand(text: &str, symbols: &dyn Symbolize, out: &mut dyn Write) -> fmt::Result {
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(OPEN) {
        out.write_str(before)?;
        let Some((hex, after)) = from.split_once(CLOSE) else {
            // The end was cut off.
            return Ok(());
        };
        match u64::from_str_radix(hex, 16) {
            Ok(address) => symbols.write_symbol(address, out)?,
            Err(_) => out.write_str(hex)?,
        }
        rest = after;
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::report::Addresses;

    fn name(address: usize) -> String {
        let mut text = String::new();
        Symbols.write_symbol(address as u64 + 1, &mut text).unwrap();
        text
    }

    #[test]
    fn exported_functions_have_names_and_others_a_place_in_their_file() {
        let exported = name(libc::getpid as *const () as usize);
        assert!(exported.contains("getpid+0x1 ["), "{exported}");
        let own = name(name as *const () as usize);
        let (file, offset) = own.split_once("+0x").unwrap();
        assert!(file.starts_with("slabcore-"), "{own}");
        assert!(u64::from_str_radix(offset, 16).is_ok(), "{own}");
        assert_eq!(name(16), "0x11");
    }

    #[test]
    fn marks_are_replaced_and_a_cut_one_is_left_out() {
        let mut text = String::from("in ");
        Later.write_symbol(0x1234, &mut text).unwrap();
        text.push_str(" age\n ");
        Later.write_symbol(7, &mut text).unwrap();
        let mut out = String::new();
        expand(&text, &Addresses, &mut out).unwrap();
        assert_eq!(out, "in 0x1234 age\n 0x7");
        out.clear();
        expand(&text[..text.len() - 1], &Addresses, &mut out).unwrap();
        assert_eq!(out, "in 0x1234 age\n ");
    }
}
