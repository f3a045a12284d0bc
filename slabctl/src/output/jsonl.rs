//! JSON lines: one cache a line, for streams and line-based tools.
//!
//! Each line is the same object as in `caches` of `slabctl.report/1`. There is
//! no envelope: the caller reports warnings on standard error.

use std::io::{self, BufWriter, Write};

use collectors::model::Cache;
use serde::Serialize;

use super::escape::Escaping;
use super::row::CacheRow;

/// Writes `caches` in the order given and flushes `out`.
///
/// An error of `out` keeps its kind, so that a closed pipe can be told.
pub(crate) fn write(out: &mut impl Write, caches: &[&Cache], page_size: u64) -> io::Result<()> {
    let mut out = Escaping::new(BufWriter::new(out));
    for cache in caches {
        serde_json::to_writer(&mut out, &CacheRow::of(cache, page_size))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes one object as a line.
pub(crate) fn line(out: &mut impl Write, object: &impl Serialize) -> io::Result<()> {
    let mut out = Escaping::new(BufWriter::new(out));
    serde_json::to_writer(&mut out, object)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{json, samples};
    use serde_json::Value;

    #[test]
    fn each_line_is_the_object_of_the_report() {
        let snapshot = samples::snapshot();
        let caches: Vec<_> = snapshot.caches.iter().collect();
        let mut text = Vec::new();
        write(&mut text, &caches, snapshot.system.page_size).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let report = serde_json::to_value(json::report(&snapshot, &caches, None)).unwrap();
        assert_eq!(Value::Array(lines), report["caches"]);
        assert!(text.starts_with("{\"name\":\"dentry\",\"id\":") && text.ends_with("}\n"));
    }

    #[test]
    fn a_line_end_in_a_name_does_not_end_the_line() {
        let mut snapshot = samples::snapshot();
        snapshot.caches[0].name = "a\nb\u{1b}[31m\u{9b}".into();
        let mut text = Vec::new();
        write(&mut text, &[&snapshot.caches[0]], 4096).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains(r#""a\nb\u001b[31m\u009b""#), "{text}");
    }

    #[test]
    fn no_cache_gives_no_line() {
        let mut text = Vec::new();
        write(&mut text, &[], 4096).unwrap();
        assert!(text.is_empty());
    }
}
