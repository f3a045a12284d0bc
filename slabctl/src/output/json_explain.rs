//! The document `slabctl.explain/1`: the slab reports of kernel logs, explained.
//!
//! Source of truth: the findings of `collectors::analysis::explain`.

use collectors::analysis::explain::Finding;
use collectors::analysis::explain::finding::{Damage, ObjectFacts};
use collectors::parse::kernel_log::report::{Detected, NodeSlabs, Stack, Track};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{WarningOut, moment};
use crate::cmd::explain::Log;

/// Reports about slab memory in kernel logs, and what they mean.
///
/// What the report does not tell is null, never 0. Later versions of this
/// document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explained<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.explain/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset. Null for saved logs,
    /// so that the same log gives the same document every time.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// The logs that were read.
    logs: Vec<LogOut<'a>>,
    /// The reports, equal ones once, in the order of the logs.
    reports: Vec<ReportOut<'a>>,
    /// What could not be read, and what to know about the logs.
    warnings: Vec<WarningOut>,
}

/// A log.
#[derive(Debug, Serialize, JsonSchema)]
struct LogOut<'a> {
    /// A path, a member of an archive, or what was read.
    name: &'a str,
    /// Lines read.
    lines: u64,
    /// Reports that differ from all others and are left out, since there are too many.
    more_reports: u64,
    /// Reports of this log that are counted in an earlier one, which has them too.
    counted_before: u64,
}

/// A report, or several equal ones.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportOut<'a> {
    /// What kind of report it is. Programs should pass over kinds they do not know.
    kind: &'static str,
    /// What happened, for example "overflow" or "double-free"; "cannot-tell"
    /// and "not-slab" are answers too. Programs should pass over classes they
    /// do not know.
    class: &'static str,
    /// One line for people.
    headline: &'a str,
    /// Position of its log in `logs`, from 0.
    log: u64,
    /// First and last line of the first of these reports, from 1.
    #[schemars(length(min = 2, max = 2))]
    lines: [u64; 2],
    /// Last line of the last one.
    last_line: u64,
    /// The time of the first one as the log has it.
    stamp: Option<&'a str>,
    /// How many reports say the same.
    repeats: u64,
    /// Position in `reports` of the finding that this one follows from; null
    /// when it stands for itself.
    consequence_of: Option<u64>,
    /// The cache as printed.
    cache: Option<&'a str>,
    /// The cache without its control group.
    cache_root: Option<&'a str>,
    /// The control group that the cache is of, in kernels up to 5.8.
    cgroup: Option<Cgroup<'a>>,
    /// The reason as the kernel printed it.
    reason: Option<&'a str>,
    /// The object.
    object: Option<ObjectOut>,
    /// Its slab.
    slab: Option<SlabOut<'a>>,
    /// Who allocated the object last.
    allocated: Option<TrackOut<'a>>,
    /// Who freed it last.
    freed: Option<TrackOut<'a>>,
    /// True when `freed` is from an earlier life of the object.
    freed_before: bool,
    /// Who ran when it was found.
    detected: DetectedOut<'a>,
    /// What the kernel did about it, as printed.
    fixes: &'a [String],
    /// Objects that were left at the destruction of their cache, by who allocated them.
    left: Vec<LeftOut<'a>>,
    /// Slabs of the nodes when an allocation failed.
    nodes: Vec<NodeOut>,
    /// What follows, the certain and the less certain.
    conclusions: Vec<ConclusionOut<'a>>,
    /// What the report does not tell.
    unknown: &'a [String],
    /// What to do.
    next: &'a [String],
    /// Names of the later logs that have it too, where it is not counted again.
    also_in: Vec<&'a str>,
}

/// A control group.
#[derive(Debug, Serialize, JsonSchema)]
struct Cgroup<'a> {
    /// Its number.
    id: u64,
    /// Its name.
    name: &'a str,
}

/// An object.
#[derive(Debug, Serialize, JsonSchema)]
struct ObjectOut {
    /// Its address in hexadecimal; null when it is hashed.
    address: Option<String>,
    /// Bytes from the start of its slab.
    offset_in_slab: Option<u64>,
    /// Its size in bytes.
    size: Option<u64>,
    /// Bytes that were asked for.
    requested: Option<u64>,
    /// Whether it was in use.
    state: Option<&'static str>,
    /// The part of its slot that was written to.
    part: Option<&'static str>,
    /// First wrong byte, from the slab's start.
    bytes_from: Option<u64>,
    /// From the first to the last wrong byte.
    bytes_len: Option<u64>,
    /// First wrong byte, from the object's start; negative before it.
    offset_in_object: Option<i128>,
    /// What was found there, in hexadecimal, at most 64 bytes.
    found: Option<String>,
    /// What each of these bytes should be.
    expected: Option<u32>,
    /// Number of the one bit that differs; null when more do.
    flipped_bit: Option<u32>,
}

/// A slab.
#[derive(Debug, Serialize, JsonSchema)]
struct SlabOut<'a> {
    /// Objects it has room for.
    objects: Option<u64>,
    /// Objects in use.
    used: Option<u64>,
    /// Its flags as printed.
    flags: Option<&'a str>,
}

/// Who allocated or freed.
#[derive(Debug, Serialize, JsonSchema)]
struct TrackOut<'a> {
    /// The function, as printed.
    by: &'a str,
    /// The process.
    pid: Option<u64>,
    /// The processor.
    cpu: Option<u64>,
    /// Jiffies between then and the report.
    age: Option<u64>,
    /// The stack, innermost first.
    stack: Vec<&'a str>,
}

/// Who ran when a report was made.
#[derive(Debug, Serialize, JsonSchema)]
struct DetectedOut<'a> {
    /// What was being done.
    operation: Option<&'static str>,
    /// The first function that is not the allocator's.
    by: Option<&'a str>,
    /// The process.
    pid: Option<u64>,
    /// Its name.
    comm: Option<&'a str>,
    /// The processor.
    cpu: Option<u64>,
    /// The kernel's release.
    kernel: Option<&'a str>,
    /// Its taint letters.
    taint: Option<&'a str>,
    /// The stack, innermost first.
    stack: Vec<&'a str>,
}

/// Objects of one call site.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut<'a> {
    /// The function; null when it is not known.
    by: Option<&'a str>,
    /// How many.
    objects: u64,
}

/// Slabs of a node.
#[derive(Debug, Serialize, JsonSchema)]
struct NodeOut {
    /// The node.
    node: u64,
    /// Slabs on it.
    slabs: u64,
    /// Objects they have room for.
    objects: u64,
    /// Free ones.
    free: u64,
}

/// A sentence.
#[derive(Debug, Serialize, JsonSchema)]
struct ConclusionOut<'a> {
    /// What follows, and why.
    text: &'a str,
    /// The report says it; nothing else that is usual looks like it; it fits.
    #[schemars(extend("enum" = ["certain", "likely", "possible"]))]
    confidence: &'static str,
}

/// The document on these logs. `live` ones have a time.
pub(crate) fn document(logs: &[Log], live: bool) -> Explained<'_> {
    let mut reports = Vec::new();
    for (at, log) in logs.iter().enumerate() {
        let first = reports.len();
        let findings = log.explanation.findings.iter();
        let findings = findings.enumerate();
        reports.extend(findings.map(|(n, f)| report(log, n, f, at, first)));
    }
    Explained {
        schema: "slabctl.explain/1",
        generated_at: moment(live.then(Timestamp::now)),
        logs: logs
            .iter()
            .map(|log| LogOut {
                name: &log.name,
                lines: log.lines,
                more_reports: log.explanation.more,
                counted_before: log.counted_before,
            })
            .collect(),
        reports,
        warnings: logs
            .iter()
            .flat_map(|log| WarningOut::all(&log.warnings))
            .collect(),
    }
}

/// One finding of the log at `log`, whose reports begin at `first`.
pub(crate) fn report<'a>(
    of: &'a Log,
    at: usize,
    finding: &'a Finding,
    log: usize,
    first: usize,
) -> ReportOut<'a> {
    let also = of.also_in.get(&at);
    let cache = finding.cache.as_ref();
    let cgroup = cache.and_then(|c| c.cgroup.as_ref());
    ReportOut {
        kind: finding.kind.name(),
        class: finding.class.name(),
        headline: &finding.headline,
        log: log as u64,
        lines: [finding.lines.0, finding.lines.1],
        last_line: finding.last_line,
        stamp: finding.stamp.as_deref(),
        repeats: finding.repeats,
        consequence_of: finding.consequence_of.map(|at| (first + at) as u64),
        cache: cache.map(|c| &*c.name),
        cache_root: cache.map(|c| &*c.root),
        cgroup: cgroup.map(|(id, name)| Cgroup { id: *id, name }),
        reason: finding.reason.as_deref(),
        object: finding.object.as_ref().map(object),
        slab: finding.slab.as_ref().map(|slab| SlabOut {
            objects: slab.objects,
            used: slab.used,
            flags: slab.flags.as_deref(),
        }),
        allocated: finding.allocated.as_ref().map(track),
        freed: finding.freed.as_ref().map(track),
        freed_before: finding.freed_before,
        detected: detected(finding, &finding.detected),
        fixes: &finding.fixes,
        left: finding
            .left
            .iter()
            .map(|site| LeftOut {
                by: site.symbol.as_deref(),
                objects: site.objects,
            })
            .collect(),
        nodes: finding.nodes.iter().map(node).collect(),
        conclusions: finding
            .conclusions
            .iter()
            .map(|c| ConclusionOut {
                text: &c.text,
                confidence: c.confidence.name(),
            })
            .collect(),
        unknown: &finding.unknown,
        next: &finding.next,
        also_in: also
            .iter()
            .flat_map(|names| names.iter().map(String::as_str))
            .collect(),
    }
}

fn object(facts: &ObjectFacts) -> ObjectOut {
    let damage = facts.damage.as_ref();
    ObjectOut {
        address: facts.address.map(|at| format!("{at:#x}")),
        offset_in_slab: facts.offset_in_slab,
        size: facts.size,
        requested: facts.requested,
        state: facts
            .state
            .map(collectors::analysis::explain::finding::State::name),
        part: damage.map(|d| d.part.name()),
        bytes_from: damage.and_then(|d| d.offset_in_slab),
        bytes_len: damage.and_then(|d| d.len),
        offset_in_object: damage.and_then(|d| d.offset_in_object.map(i128::from)),
        found: damage.and_then(found),
        expected: damage.and_then(|d| d.expected.map(u32::from)),
        flipped_bit: damage.and_then(|d| d.flipped_bit.map(|(bit, _)| bit)),
    }
}

fn found(damage: &Damage) -> Option<String> {
    let bytes: Vec<String> = damage.found.iter().map(|b| format!("{b:02x}")).collect();
    (!bytes.is_empty()).then(|| bytes.join(" "))
}

fn track(track: &Track) -> TrackOut<'_> {
    TrackOut {
        by: &track.symbol,
        pid: track.pid,
        cpu: track.cpu,
        age: track.age,
        stack: stack(&track.stack),
    }
}

fn detected<'a>(finding: &'a Finding, who: &'a Detected) -> DetectedOut<'a> {
    DetectedOut {
        operation: finding
            .operation
            .map(collectors::analysis::explain::finding::Operation::name),
        by: finding.detected_by.as_deref(),
        pid: who.pid,
        comm: who.comm.as_deref(),
        cpu: who.cpu,
        kernel: who.kernel.as_deref(),
        taint: who.taint.as_deref(),
        stack: stack(&who.stack),
    }
}

/// Frames that are certain; those marked `?` may be left from earlier calls.
fn stack(stack: &Stack) -> Vec<&str> {
    let sure = stack.frames.iter().filter(|frame| !frame.guess);
    sure.map(|frame| &*frame.symbol).collect()
}

fn node(node: &NodeSlabs) -> NodeOut {
    NodeOut {
        node: node.node,
        slabs: node.slabs,
        objects: node.objects,
        free: node.free,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{check, schema};
    use serde_json::Value;

    fn log(text: &[u8]) -> Log {
        Log::read("log", text)
    }

    const OVERFLOW: &[u8] =
        include_bytes!("../../../collectors/tests/data/log/slub-6.6-kmalloc-redzone-arm.txt");
    const TWICE: &[u8] =
        include_bytes!("../../../collectors/tests/data/log/slub-5.9-double-free-ppc64-quoted.txt");
    const FAILED: &[u8] = include_bytes!("../../../collectors/tests/data/log/failure-memcg.txt");

    #[test]
    fn documents_follow_the_schema() {
        let schema = schema::schema("explain").unwrap();
        for logs in [
            vec![],
            vec![log(b"nothing\n")],
            vec![log(OVERFLOW), log(TWICE), log(FAILED)],
        ] {
            let value = serde_json::to_value(document(&logs, false)).unwrap();
            assert_eq!(check::errors(&schema, &value), Vec::<String>::new());
        }
    }

    #[test]
    fn what_a_program_needs_is_there() {
        let logs = [log(OVERFLOW), log(TWICE), log(FAILED)];
        let value = serde_json::to_value(document(&logs, false)).unwrap();
        let reports = value["reports"].as_array().unwrap();
        assert_eq!(reports.len(), 4);
        let object = &reports[0]["object"];
        assert_eq!(object["offset_in_object"], 2);
        assert_eq!(object["found"], "00 00");
        assert_eq!(object["expected"], 0xcc);
        assert_eq!(object["requested"], 2);
        assert_eq!(reports[0]["allocated"]["by"], "usb_get_status+0x2b/0xac");
        assert_eq!(reports[0]["freed"], Value::Null);
        // Positions count over all logs.
        assert_eq!(reports[2]["consequence_of"], 1);
        assert_eq!(reports[2]["log"], 1);
        assert_eq!(reports[3]["cgroup"]["name"], "helper-logs");
        assert_eq!(reports[3]["nodes"][0]["objects"], 170);
        assert_eq!(value["generated_at"], Value::Null);
    }
}
