//! What the live screen asks for outside: lists, snapshots, changes.

use std::io::Write as _;
use std::path::Path;

use collectors::control::{self, Control, Look, Validated};
use collectors::model::Cache;
use collectors::source::kmsg::Kmsg;
use tui::host::{Export, Host};
use tui::msg::Change;

use crate::cli::Global;
use crate::cmd::capture;
use crate::output::json;

/// Writes files, and into the kernel's attribute files.
#[derive(Debug)]
pub(super) struct Files {
    global: Global,
}

impl Files {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            global: global.clone(),
        }
    }

    fn root(&self) -> &Path {
        self.global.root.as_deref().unwrap_or("/".as_ref())
    }
}

impl Host for Files {
    fn export(&mut self, list: &Export) -> Result<String, String> {
        let mut bytes = Vec::new();
        let json = list.path.extension().is_some_and(|e| e == "json");
        let written = if json {
            let caches: Vec<&Cache> = list
                .places
                .iter()
                .filter_map(|place| list.snapshot.caches.get(*place))
                .collect();
            let report = json::report(&list.snapshot, &caches, list.snapshot.origin.taken_at);
            json::write(&mut bytes, &report)
        } else {
            csv(list, &mut bytes)
        };
        written.map_err(|e| e.to_string())?;
        save(&list.path, &bytes)?;
        Ok(format!(
            "{}: {} lines",
            list.path.display(),
            list.rows.len()
        ))
    }

    fn picture(&mut self, path: &Path, text: &str) -> Result<String, String> {
        save(path, text.as_bytes())?;
        Ok(format!("{}: the screen", path.display()))
    }

    fn snapshot(&mut self, path: &Path) -> Result<String, String> {
        capture::write_file(self.root(), path).map_err(|e| e.to_string())
    }

    fn change(&mut self, change: Change, cache: &str) -> Result<String, String> {
        let found = Control::of(self.root()).find(cache);
        let Some(dir) = found.map_err(|e| e.to_string())? else {
            return Err(format!("{cache:?} is no cache of the kernel"));
        };
        let said = match change {
            Change::Shrink => dir.shrink().map(|()| "shrunk".to_owned()),
            // What it finds is only in the kernel's log.
            Change::Validate => Kmsg::open(&self.root().join("dev/kmsg"))
                .and_then(|mut log| control::look(&mut log, || dir.validate()))
                .map(|look| verdict(&look)),
        };
        said.map(|said| format!("{cache}: {said}"))
            .map_err(|e| e.to_string())
    }
}

/// In a few words; `slabctl validate` looks again and tells all.
fn verdict(look: &Look) -> String {
    match (look.answer, look.reports.len(), &look.incomplete) {
        (Validated::NotDebugged, ..) => {
            "not validated: the kernel checks only caches with debug options".to_owned()
        }
        (_, 0, None) => "validated: the kernel reported nothing".to_owned(),
        (_, 0, Some(why)) => format!("validated, but {why}"),
        (_, 1, _) => "validated: 1 report in the kernel's log".to_owned(),
        (_, n, _) => format!("validated: {n} reports in the kernel's log"),
    }
}

fn csv(list: &Export, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&list.head)?;
    for row in &list.rows {
        writer.write_record(row)?;
    }
    writer.flush()
}

/// Never over a file that is there.
fn save(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(at)?;
    file.write_all(bytes).map_err(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_report_is_clean_only_when_the_whole_log_was_read() {
        let mut look = Look {
            answer: Validated::Done,
            reports: Vec::new(),
            incomplete: None,
        };
        assert!(verdict(&look).contains("nothing"));
        look.incomplete = Some("the log breaks off".to_owned());
        assert!(!verdict(&look).contains("nothing"), "{}", verdict(&look));
        look.answer = Validated::NotDebugged;
        assert!(verdict(&look).starts_with("not validated"));
    }
}
