//! Small pieces of sentences.

use std::fmt::Write as _;

use super::finding::{CacheName, Finding};
use crate::analysis::groups::{memcg_owner, size_class};
use crate::parse::kernel_log::report::Track;
use crate::source::doctor::boot_words;

/// `1 byte`, `2 bytes`.
pub(super) fn bytes(count: u64) -> String {
    counted(count, "byte")
}

/// `1 object`, `2 objects`.
pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// `00 00 c0`, at most 16 bytes.
pub(super) fn hex(list: &[u8]) -> String {
    let mut out = String::new();
    for byte in list.iter().take(16) {
        // Writing to a string does not fail.
        let _ = write!(out, "{}{byte:02x}", if out.is_empty() { "" } else { " " });
    }
    if list.len() > 16 {
        out.push_str(" ..");
    }
    out
}

/// A cache's name, taken apart.
pub(super) fn cache_name(name: &str) -> CacheName {
    let owner = memcg_owner(name);
    CacheName {
        name: name.to_owned(),
        root: owner.map_or(name, |o| o.base).to_owned(),
        cgroup: owner.map(|o| (o.id, o.cgroup.to_owned())),
    }
}

/// Bytes of an object, where the name tells them: `kmalloc-64`, `size-32`.
pub(super) fn size_of_name(name: &CacheName) -> Option<u64> {
    size_class(&name.root).map(|class| class.size)
}

/// Whether the letter of a kernel's taint field is there.
pub(super) fn tainted(taint: Option<&str>, letter: char) -> bool {
    let letters = taint.unwrap_or_default();
    let letters = letters.strip_prefix("Tainted:").unwrap_or(letters);
    !letters.starts_with("Not") && letters.contains(letter)
}

/// Who allocated or freed, as in `foo+0x1/0x2 (pid 41, cpu 3, 12 jiffies before)`.
pub fn who(track: &Track) -> String {
    let mut details = Vec::new();
    details.extend(track.pid.map(|pid| format!("pid {pid}")));
    details.extend(track.cpu.map(|cpu| format!("cpu {cpu}")));
    details.extend(track.age.map(|age| {
        let unit = if age == 1 { "jiffy" } else { "jiffies" };
        format!("{age} {unit} before")
    }));
    if details.is_empty() {
        return track.symbol.clone();
    }
    format!("{} ({})", track.symbol, details.join(", "))
}

/// The boot option that makes a kernel track the objects of a cache.
pub(super) fn tracking(finding: &Finding) -> String {
    let (word, _) = boot_words(finding.detected.kernel.as_deref());
    let cache = finding.cache.as_ref().map_or("CACHE", |c| &c.root);
    format!("{word}=U,{cache}")
}

/// The boot option for all checks of a cache.
pub(super) fn checking(finding: &Finding) -> String {
    let (word, _) = boot_words(finding.detected.kernel.as_deref());
    let cache = finding.cache.as_ref().map_or("CACHE", |c| &c.root);
    format!("{word}=FZPU,{cache}")
}
