//! The documents `slabctl.bench-thread/1` and `slabctl.bench-threads/1`: kernel threads
//! asked again.
//!
//! Source of truth: `loads::seed` and `cmd::bench::thread`.

use jiff::Timestamp;
use loads::model::WEIGHTS;
use loads::seed::{SEEDS, Sheet, Value};
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::moment;
use super::machine::Machine;
use crate::cmd::bench::thread::{self, Ran};

/// A kernel thread, asked again: what was published, and what is seen here.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.bench-thread/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// The thread.
    thread: ThreadOut,
    /// The machine of the published figures.
    published_on: &'a str,
    /// This machine, for what is measured and counted.
    machine: &'a Machine,
    /// What differs here, beside the machine.
    differs: &'a str,
    /// How the figures are to be read.
    reading: &'a [&'a str],
    /// Rounds of what is measured.
    rounds: u64,
    /// What the model is.
    model: Model,
    /// All tables.
    sheets: Vec<SheetOut<'a>>,
    /// Mistakes that a workload noticed; empty when all is sound.
    wrong: &'a [String],
}

/// What the model is.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// In words.
    what: &'static str,
    /// Logical processors at most, where it goes by their number.
    processors: u64,
    /// What things cost in it, in cycles.
    cycles: Cycles,
}

/// What things cost in the model, in cycles.
#[derive(Debug, Serialize, JsonSchema)]
struct Cycles {
    /// An operation of the fast path.
    fast: u64,
    /// A slow path, without what follows.
    slow: u64,
    /// A locked instruction.
    atomic: u64,
    /// A cache line that another processor had.
    transfer: u64,
    /// What is done under a list lock.
    list: u64,
    /// A slab made or given back, without its objects.
    pages: u64,
    /// Each object of a new slab.
    object: u64,
    /// Everything but the allocator, for a message.
    message: u64,
}

/// A table.
#[derive(Debug, Serialize, JsonSchema)]
struct SheetOut<'a> {
    /// Where its figures are from: the thread; the engine's counters here; the
    /// model; clocks here.
    #[schemars(extend("enum" = ["published", "counted", "model", "measured"]))]
    kind: &'static str,
    /// What is in it, with the unit.
    title: &'a str,
    /// Headings.
    columns: &'a [String],
    /// Rows, as long as the headings: words, figures, or null where nothing is known.
    rows: Vec<Vec<Cell<'a>>>,
}

/// A cell: words, a figure, or null where nothing is known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Cell<'a> {
    /// Words.
    Text(&'a str),
    /// A figure.
    Number(Option<f64>),
}

/// The threads that can be asked again.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.bench-threads/1"))]
    schema: &'static str,
    /// The threads, oldest first.
    threads: Vec<ThreadOut>,
}

/// A thread.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadOut {
    /// The year, by which it is called.
    year: u16,
    /// The subject of its mails.
    subject: &'static str,
    /// What it asked.
    question: &'static str,
    /// The command that runs it.
    command: String,
}

impl ThreadOut {
    fn of(seed: &loads::seed::Seed) -> Self {
        Self {
            year: seed.year,
            subject: seed.subject,
            question: seed.question,
            command: thread::command(seed),
        }
    }
}

/// The list of threads.
pub(crate) fn list() -> List {
    List {
        schema: "slabctl.bench-threads/1",
        threads: SEEDS.iter().map(ThreadOut::of).collect(),
    }
}

/// The document of a thread that was run.
pub(crate) fn document(ran: &Ran, now: Timestamp) -> Document<'_> {
    Document {
        schema: "slabctl.bench-thread/1",
        generated_at: moment(Some(now)),
        thread: ThreadOut::of(ran.seed),
        published_on: ran.seed.machine,
        machine: &ran.machine,
        differs: ran.seed.differs,
        reading: ran.seed.reading,
        rounds: ran.rounds as u64,
        model: Model {
            what: thread::MODEL,
            processors: ran.cpus as u64,
            cycles: Cycles {
                fast: WEIGHTS.fast,
                slow: WEIGHTS.slow,
                atomic: WEIGHTS.atomic,
                transfer: WEIGHTS.transfer,
                list: WEIGHTS.list,
                pages: WEIGHTS.pages,
                object: WEIGHTS.object,
                message: WEIGHTS.message,
            },
        },
        sheets: ran.sheets.iter().map(sheet_out).collect(),
        wrong: &ran.wrong,
    }
}

fn sheet_out(sheet: &Sheet) -> SheetOut<'_> {
    SheetOut {
        kind: sheet.kind.name(),
        title: &sheet.title,
        columns: &sheet.columns,
        rows: { sheet.rows.iter() }
            .map(|row| row.iter().map(Cell::of).collect())
            .collect(),
    }
}

impl<'a> Cell<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Text(text) => Self::Text(text),
            Value::Number(number, _) => Self::Number(number.is_finite().then_some(*number)),
            Value::Unknown => Self::Number(None),
        }
    }
}
