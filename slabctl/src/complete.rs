//! Completions that know the caches of this machine.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;

/// Names of real caches that begin with what was typed. The directory can be
/// listed by anybody; no attribute is read.
pub(crate) fn caches(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let mut names: Vec<String> = std::fs::read_dir("/sys/kernel/slab")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.starts_with(&*current))
        .filter(|name| current.starts_with(':') || !name.starts_with(':'))
        .collect();
    names.sort();
    names.into_iter().map(CompletionCandidate::new).collect()
}
