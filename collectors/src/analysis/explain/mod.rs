//! Reports of a kernel log in plain words: what happened, to which object, by
//! how much, what follows from what, what is not known, what to do next.
//!
//! Purpose: a pure function of the reports that `parse::kernel_log` gives.
//! Source of truth: the debugging code of mm/slub.c and mm/slab.c, and public
//! reports whose outcome is known. A sentence is `certain` when the report says
//! it, `likely` when nothing else that is usual looks like it, `possible` when
//! it only fits. It never names a culprit where the kernel does not: who wrote
//! is not in these reports.

pub(crate) mod boot;
mod damage;
pub mod finding;
mod frames;
mod group;
mod identity;
mod layout;
mod lists;
mod others;
mod pattern;
mod related;
mod remark;
mod shortage;
mod slab;
mod slub;
mod words;

pub use finding::{Class, Confidence, Finding, Kind};
pub use group::MAX_FINDINGS;
pub use identity::Identity;
pub use words::who;

use crate::parse::kernel_log::report::{Body, Report, Tool};
use group::Groups;

/// All of a log, explained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Explanation {
    /// In the order of the log; equal reports are one.
    pub findings: Vec<Finding>,
    /// Reports that differ from all others and are left out.
    pub more: u64,
    /// What to know about the log as a whole.
    pub notes: Vec<String>,
}

impl Explanation {
    /// Whether there is something to look into.
    pub fn accuses(&self) -> bool {
        self.findings.iter().any(|f| f.class.accuses())
    }
}

/// Explains one report by itself.
pub fn explain_report(report: &Report) -> Finding {
    let mut finding = match &report.body {
        Body::Slub(found) => slub::explain(report, found),
        Body::Corruption(found) => slab::corruption(report, found),
        Body::SlabError(found) => slab::error(report, found),
        Body::CacheDestroy(found) => others::destroy(report, found),
        Body::WrongCache(found) => others::wrong_cache(report, found),
        Body::Usercopy(found) => others::usercopy(report, found),
        Body::AllocationFailure(found) => shortage::failure(report, found),
        Body::Oom(found) => shortage::oom(report, found),
        Body::Validator(found) => others::validator(report, found),
        Body::KernelBug(found) => others::kernel_bug(report, found),
        Body::Remark(found) => remark::explain(report, found),
        Body::Foreign(found) => others::foreign(report, found),
    };
    finding.lines = report.lines;
    finding.last_line = report.lines.1;
    finding.stamp.clone_from(&report.stamp);
    finding
}

/// Explains report after report, in bounded memory.
#[derive(Debug, Default)]
pub struct Explainer {
    groups: Groups,
    /// The kernel had found damage before the first report of the log.
    damaged_before: Option<bool>,
}

impl Explainer {
    /// Takes the next report of the log, and says which finding it became or
    /// was added to; `None` when it is not kept.
    pub fn add(&mut self, report: &Report) -> Option<usize> {
        self.add_explained(report, explain_report(report))
    }

    /// The same for a report that was explained already.
    pub fn add_explained(&mut self, report: &Report, finding: Finding) -> Option<usize> {
        if self.damaged_before.is_none()
            && let Some(taint) = banner_taint(report)
        {
            self.damaged_before = Some(words::tainted(Some(taint), 'B'));
        }
        self.groups.add(finding)
    }

    /// No more reports.
    pub fn finish(mut self) -> Explanation {
        self.groups.finish();
        let mut notes = Vec::new();
        if self.damaged_before == Some(true) {
            notes.push(
                "the kernel had found damage before the first report here (taint B): the first fault is not in this log"
                    .to_owned(),
            );
        }
        Explanation {
            findings: self.groups.findings,
            more: self.groups.more,
            notes,
        }
    }
}

/// The taint before a report, which its banner has. The line on who ran has the
/// taint after it.
fn banner_taint(report: &Report) -> Option<&str> {
    match &report.body {
        Body::Slub(slub) => slub.taint.as_deref(),
        Body::Corruption(found) => found.taint.as_deref(),
        Body::WrongCache(_) => report.detected.taint.as_deref(),
        _ => None,
    }
}

/// Explains all reports of a log.
pub fn explain(reports: &[Report]) -> Explanation {
    let mut explainer = Explainer::default();
    for report in reports {
        explainer.add(report);
    }
    explainer.finish()
}

/// The name of a tool.
pub const fn tool_name(tool: Tool) -> &'static str {
    match tool {
        Tool::Kasan => "KASAN",
        Tool::Kfence => "KFENCE",
        Tool::Kmemleak => "kmemleak",
    }
}
