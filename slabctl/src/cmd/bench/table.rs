//! Results as tables: times beside each other, and what was counted.

use std::collections::BTreeMap;

use loads::figure::{Ratio, Verdict, median, quartiles};

use super::{CaseResult, Plan, WorkloadResult};
use crate::output::table::{Cell, Head, Table};

/// Medians of every contender, and how the first compares with the best other.
pub(super) fn times(plan: &Plan, result: &WorkloadResult) -> Table {
    let mut heads = vec![
        Head::left(result.workload.name),
        Head::left("figure"),
        Head::left("unit"),
    ];
    heads.extend(plan.contenders.iter().map(|name| Head::right(name)));
    let first = plan.contenders.first().map_or("", String::as_str);
    heads.push(Head::left(&format!("{first} needs")));
    let mut table = Table::new(heads);
    for case in &result.cases {
        for (figure, unit) in &case.figures {
            let mut cells = vec![
                Cell::text(label(result, case)),
                Cell::text(figure),
                Cell::text(unit),
            ];
            for contender in &plan.contenders {
                cells.push(figure_cell(case.of(contender, figure)));
            }
            cells.push(Cell::text(comparison(plan, case, figure)));
            table.row(cells);
        }
    }
    table
}

fn label(result: &WorkloadResult, case: &CaseResult) -> String {
    if result.workload.of.is_empty() {
        "-".to_owned()
    } else {
        case.case.to_string()
    }
}

/// The median, with half the distance of the quartiles.
fn figure_cell(values: &[f64]) -> Cell {
    let (Some(middle), Some((low, high))) = (median(values), quartiles(values)) else {
        return Cell::missing();
    };
    let spread = (high - low) / 2.0;
    Cell::both(format!("{middle:.2} ±{spread:.2}"), format!("{middle:.4}"))
}

/// How the first contender compares with the best of the others.
pub(super) fn comparison(plan: &Plan, case: &CaseResult, figure: &str) -> String {
    let Some((first, others)) = plan.contenders.split_first() else {
        return String::new();
    };
    let best = others
        .iter()
        .filter_map(|name| Some((name, median(case.of(name, figure))?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((best, _)) = best else {
        return "-".to_owned();
    };
    match Ratio::of(case.of(first, figure), case.of(best, figure)) {
        None => "too few rounds to compare".to_owned(),
        Some(ratio) if ratio.verdict() == Verdict::NotShown => {
            format!("as {best}, within the noise")
        }
        Some(Ratio { value, low, high }) => {
            format!("{value:.2} ({low:.2}-{high:.2}) of {best}")
        }
    }
}

/// What is told of the counters: heading, and the counters it is of.
const COUNTED: [(&str, &[&str]); 7] = [
    ("atomics", &["atomic_ops"]),
    ("list locks", &["list_lock"]),
    ("waited", &["list_lock_contended"]),
    ("slabs new", &["alloc_slab"]),
    ("slabs gone", &["free_slab"]),
    ("remote", &["remote_free"]),
    (
        "list moves",
        &[
            "free_add_partial",
            "free_remove_partial",
            "alloc_from_partial",
            "deactivate_to_head",
            "deactivate_to_tail",
        ],
    ),
];

/// What the engine counted, for a thousand allocations, in the last round.
pub(super) fn counters(plan: &Plan, result: &WorkloadResult) -> Table {
    let mut heads = vec![
        Head::left(result.workload.name),
        Head::left("policy"),
        Head::right("allocs"),
        Head::right("fast %"),
        Head::right("frees"),
        Head::right("fast %"),
    ];
    heads.extend(COUNTED.map(|(title, _)| Head::right(&format!("{title}/k"))));
    heads.extend(["held KiB", "parked"].map(Head::right));
    let mut table = Table::new(heads);
    for case in &result.cases {
        for contender in &plan.contenders {
            let rounds = case.counters.get(contender);
            let Some(counters) = rounds.and_then(|rounds| rounds.last()) else {
                continue;
            };
            let mut cells = vec![Cell::text(label(result, case)), Cell::text(contender)];
            cells.extend(shares(counters, "alloc_fastpath", "alloc_slowpath"));
            cells.extend(shares(counters, "free_fastpath", "free_slowpath"));
            let allocs = get(counters, "alloc_fastpath") + get(counters, "alloc_slowpath");
            cells.extend(COUNTED.map(|(_, names)| {
                let sum: u64 = names.iter().map(|name| get(counters, name)).sum();
                if allocs == 0 {
                    return Cell::missing();
                }
                Cell::text(format!("{:.2}", sum as f64 * 1000.0 / allocs as f64))
            }));
            let held = |name: &str, of: u64| {
                let n = counters.get(name);
                n.map_or_else(Cell::missing, |n| Cell::text((n / of).to_string()))
            };
            cells.push(held("held_slab_bytes", 1024));
            cells.push(held("held_parked_objects", 1));
            table.row(cells);
        }
    }
    table
}

fn get(counters: &BTreeMap<String, u64>, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

fn shares(counters: &BTreeMap<String, u64>, fast: &str, slow: &str) -> [Cell; 2] {
    let (fast, slow) = (get(counters, fast), get(counters, slow));
    let all = fast + slow;
    let share = if all == 0 {
        Cell::missing()
    } else {
        Cell::text(format!("{:.1}", fast as f64 * 100.0 / all as f64))
    };
    [Cell::text(all.to_string()), share]
}
