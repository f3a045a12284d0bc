//! Finds and reads the configuration of the live screen.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tui::model::{List, Settings};

use crate::fail::Failure;

/// Applies the named configuration, or the user's own where there is one.
pub(super) fn apply(
    named: Option<&Path>,
    settings: &mut Settings,
    list: &mut List,
) -> Result<(), Failure> {
    let Some(path) = named.map(Path::to_owned).or_else(usual) else {
        return Ok(());
    };
    let bad = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if named.is_none() && e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(bad(e.to_string())),
    };
    tui::config::apply(&text, settings, list).map_err(|e| bad(e.to_string()))
}

/// Where the user's configuration is, by the XDG base directories.
fn usual() -> Option<PathBuf> {
    let below = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match below("XDG_CONFIG_HOME").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() => folder,
        _ => PathBuf::from(below("HOME")?).join(".config"),
    };
    Some(folder.join("slabctl/top.toml"))
}
