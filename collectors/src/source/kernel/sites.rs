//! Call sites of a cache: debugfs since Linux 5.14, sysfs before.

use std::io;

use super::entries::CacheDir;
use crate::model::{Cache, SiteKind, Warning, WarningCode, Warnings};
use crate::parse::traces;
use crate::source::tree::Tree;

const DEBUGFS: &str = "sys/kernel/debug/slab";

const FILES: [(&str, &str, SiteKind); 2] = [
    ("alloc_traces", "alloc_calls", SiteKind::Alloc),
    ("free_traces", "free_calls", SiteKind::Free),
];

/// Reads both lists. A cache without user tracking has none, which is no
/// fault; `sites` then stays `None`.
pub(super) fn read(
    root: &dyn Tree,
    sysfs: &dyn Tree,
    dir: &CacheDir,
    cache: &mut Cache,
    warnings: &mut Warnings,
) {
    for (debugfs_name, sysfs_name, kind) in FILES {
        let path = format!("{DEBUGFS}/{}/{debugfs_name}", dir.id);
        let (text, path) = match root.read(&path) {
            Ok(text) => (text, path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                warnings
                    .push(Warning::new(WarningCode::Unreadable, "permission denied").in_file(path));
                continue;
            }
            Err(_) => {
                let path = format!("{}/{sysfs_name}", dir.id);
                match sysfs.read(&path) {
                    // Empty, or ENOSYS: the cache is not tracked.
                    Ok(text) if !text.is_empty() => (text, path),
                    _ => continue,
                }
            }
        };
        let (sites, more) = traces::parse(&text, kind);
        for warning in &more {
            warnings.push(warning.clone().in_file(&path));
        }
        cache.sites.get_or_insert_default().extend(sites);
    }
}
