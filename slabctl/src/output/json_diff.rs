//! To come.
use collectors::analysis::diff::{Diff, DiffRow};
use collectors::model::Snapshot;
use std::io::Write;
pub(crate) fn document(_a: &Snapshot, _b: &Snapshot, _d: &Diff) -> serde_json::Value {
    serde_json::Value::Null
}
pub(crate) fn write_line(_out: &mut impl Write, _row: &DiffRow) -> std::io::Result<()> {
    Ok(())
}
