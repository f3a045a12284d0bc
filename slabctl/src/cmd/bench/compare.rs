//! `slabctl bench compare A B`: two results of the same workloads.

use std::io::{Read as _, Write as _};
use std::path::Path;

use loads::figure::{Ratio, median};
use serde_json::Value;

use crate::cmd::{Context, report};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::text;

/// Bytes of a result at most.
const MOST: u64 = 16 << 20;
/// Rounds of a figure that count: as many as a run can have.
const ROUNDS: usize = 1000;

/// Runs the command.
pub(super) fn run(context: &Context, before: &Path, after: &Path) -> anyhow::Result<Status> {
    let (a, b) = (read(before)?, read(after)?);
    let heads = ["Workload", "Case", "Figure", "Contender"].map(Head::left);
    let mut heads = heads.to_vec();
    heads.extend(["Before", "After", "Ratio", "From", "To"].map(Head::right));
    heads.push(Head::left("Verdict"));
    let mut table = Table::new(heads);
    let mut lone = 0u64;
    for (key, after) in &b {
        let Some((_, before)) = a.iter().find(|(k, _)| k == key) else {
            lone += 1;
            continue;
        };
        let mut cells: Vec<Cell> = key
            .iter()
            .map(|part| Cell::text(text::safe(part)))
            .collect();
        let number = |value: Option<f64>| {
            value.map_or_else(Cell::missing, |v| Cell::text(format!("{v:.2}")))
        };
        cells.extend([number(median(before)), number(median(after))]);
        let ratio = Ratio::unpaired(after, before);
        cells.extend([
            number(ratio.map(|r| r.value)),
            number(ratio.map(|r| r.low)),
            number(ratio.map(|r| r.high)),
            Cell::text(ratio.map_or("too few rounds", |r| r.verdict().name())),
        ]);
        table.row(cells);
    }
    let mut out = Context::out();
    report::write_table(context, &table, &mut out)?;
    out.flush()?;
    if table.rows.is_empty() {
        return Err(Failure::new(Status::Failed, "the two have nothing in common").into());
    }
    if lone > 0 {
        context.note(&format!("{lone} figures are in the later result only"));
    }
    Ok(Status::Ok)
}

/// Workload, case, figure, contender; and a value for each round.
type Rounds = Vec<([String; 4], Vec<f64>)>;

fn read(path: &Path) -> Result<Rounds, Failure> {
    let bad = |why: &str| Failure::new(Status::Failed, format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| bad(&e.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|e| bad(&e.to_string()))?;
    if bytes.len() as u64 > MOST {
        return Err(bad("too large for a result"));
    }
    let document: Value = serde_json::from_slice(&bytes).map_err(|e| bad(&e.to_string()))?;
    if document["schema"] != "slabctl.bench/1" {
        return Err(bad(
            "not a result of slabctl bench --json (slabctl.bench/1)",
        ));
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rounds = Vec::new();
    for workload in list(&document["workloads"]) {
        for case in list(&workload["cases"]) {
            for result in list(&case["results"]) {
                for figure in list(&result["figures"]) {
                    let key = [
                        word(&workload["name"]),
                        case["case"].to_string(),
                        word(&figure["name"]),
                        word(&result["contender"]),
                    ];
                    let values = list(&figure["rounds"]);
                    rounds.push((
                        key,
                        values
                            .iter()
                            .take(ROUNDS)
                            .filter_map(Value::as_f64)
                            .collect(),
                    ));
                }
            }
        }
    }
    Ok(rounds)
}
