//! Puts lines together: wrapped ones into one, and those of one report into it.
//!
//! Purpose: reports of several CPUs interleave, mail programs wrap lines, and
//! other messages stand between. Lines are told apart by the caller id where
//! the log has it; without it a line that fits nowhere is passed over. A
//! report ends where another begins, or after [`QUIET`] lines that are not of
//! it. Reports in progress are bounded in number and size.

use std::collections::VecDeque;

use super::item::{self, Item, Read};
use super::open::Open;
use super::report::{Body, Report};
use super::{frame, transport};
use crate::parse::clean;

/// Lines of other kinds after which a report is over. Registers, modules and
/// code between a report and its stack are some thirty.
const QUIET: u32 = 200;

/// Reports in progress at once.
const MAX_OPEN: usize = 16;

/// Lines that a mail program made of one.
const MAX_PARTS: u32 = 4;

/// A line that ended early.
#[derive(Debug)]
struct Pending {
    text: String,
    read: Read,
    number: u64,
    stamp: Option<String>,
    caller: Option<String>,
    parts: u32,
}

/// Where a line was, and who printed it.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    number: u64,
    stamp: Option<&'a str>,
    caller: Option<&'a str>,
    info: bool,
}

/// Turns lines into reports.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pending: Option<Pending>,
    open: Vec<Open>,
    done: VecDeque<Report>,
}

impl Assembler {
    /// Whether no report is in progress.
    pub fn is_idle(&self) -> bool {
        self.pending.is_none() && self.open.is_empty()
    }

    /// The next report that is complete.
    pub fn next_report(&mut self) -> Option<Report> {
        self.done.pop_front()
    }

    /// Takes a line.
    pub fn line(&mut self, number: u64, raw: &[u8]) {
        let text = clean::line(raw);
        let mut line = transport::strip(&text);
        let unescaped;
        if line.escaped && line.text.contains('\\') {
            unescaped = transport::unescape(line.text);
            line.text = &unescaped;
        }
        if let Some(pending) = self.pending.take() {
            if !line.prefixed && goes_on(&pending, line.text) {
                self.join(pending, line.text);
                return;
            }
            self.release(pending);
        }
        let place = Place {
            number,
            stamp: line.stamp,
            caller: line.caller,
            info: line.text.trim_start().starts_with("INFO: "),
        };
        if self.take_frame(line.text, place) {
            return;
        }
        match item::read(line.text) {
            Some(read) if read.complete => self.item(read, place),
            Some(read) => {
                self.pending = Some(Pending {
                    text: line.text.trim().to_owned(),
                    read,
                    number,
                    stamp: line.stamp.map(str::to_owned),
                    caller: line.caller.map(str::to_owned),
                    parts: 1,
                });
            }
            None => self.other(line.text, place),
        }
    }

    /// No more lines.
    pub fn finish(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.release(pending);
        }
        for open in std::mem::take(&mut self.open) {
            self.done.extend(open.finish());
        }
    }

    fn join(&mut self, mut pending: Pending, next: &str) {
        pending.text.push(' ');
        pending.text.push_str(next.trim());
        pending.parts += 1;
        if let Some(read) = item::read(&pending.text) {
            pending.read = read;
        }
        if pending.read.complete {
            self.release(pending);
        } else {
            self.pending = Some(pending);
        }
    }

    fn release(&mut self, pending: Pending) {
        let place = Place {
            number: pending.number,
            stamp: pending.stamp.as_deref(),
            caller: pending.caller.as_deref(),
            info: pending.text.starts_with("INFO: "),
        };
        // Without a taint, one word of a reason is not enough to be a banner.
        let doubtful = matches!(&pending.read.item, Item::Banner { taint: None, reason, .. }
            if !pending.read.complete && !reason.contains(' '));
        if doubtful {
            self.quieter();
        } else {
            self.item(pending.read, place);
        }
    }

    /// The report that a line of `caller` would belong to: its own, else one
    /// whose caller is not known.
    fn owner(&self, caller: Option<&str>) -> Option<usize> {
        let callers = || self.open.iter().map(|open| open.report.caller.as_deref());
        callers()
            .rposition(|c| c == caller)
            .or_else(|| callers().rposition(|c| caller.is_none() || c.is_none()))
    }

    fn take_frame(&mut self, text: &str, place: Place<'_>) -> bool {
        let Some(at) = self
            .owner(place.caller)
            .filter(|at| self.open[*at].in_stack())
        else {
            return false;
        };
        let Some(frame) = frame::read(text) else {
            return false;
        };
        self.open[at].frame(frame);
        self.taken(at, place);
        true
    }

    fn taken(&mut self, at: usize, place: Place<'_>) {
        let open = &mut self.open[at];
        open.report.lines.1 = open.report.lines.1.max(place.number);
        open.quiet = 0;
    }

    fn item(&mut self, read: Read, place: Place<'_>) {
        let mut item = read.item;
        if let Some(at) = self.owner(place.caller) {
            if self.open[at].ends_with(&item) {
                self.close(at);
                return;
            }
            // This may already belong to the next report.
            let ahead = matches!(&item, Item::Overwritten(found) if found.what.is_some());
            match self.open[at].take(item, place.number, place.info) {
                Ok(()) if ahead => {
                    self.open[at].quiet = 0;
                    return;
                }
                Ok(()) => return self.taken(at, place),
                Err(back) => item = back,
            }
        }
        let Some(mut new) = Open::begin(item, read.complete) else {
            return self.quieter();
        };
        new.report.lines = (place.number, place.number);
        new.report.stamp = place.stamp.map(item::clip);
        new.report.caller = place.caller.map(item::clip);
        // Reports of other callers go on beside this one.
        if let Some(at) = self.owner(place.caller) {
            let later = self.open[at].take_later();
            if let (Body::Slub(slub), Some((first, _))) = (&mut new.report.body, later.first()) {
                new.report.lines.0 = *first;
                slub.overwritten
                    .extend(later.into_iter().map(|(_, found)| found));
            }
            self.close(at);
        }
        if self.open.len() >= MAX_OPEN {
            self.close(0);
        }
        self.open.push(new);
    }

    /// A line that is nothing by itself.
    fn other(&mut self, text: &str, place: Place<'_>) {
        if let Some(at) = self.owner(place.caller)
            && self.open[at].text(text)
        {
            return self.taken(at, place);
        }
        if !text.trim().is_empty() {
            self.quieter();
        }
    }

    fn quieter(&mut self) {
        for at in (0..self.open.len()).rev() {
            self.open[at].quiet += 1;
            if self.open[at].quiet > QUIET {
                self.close(at);
            }
        }
    }

    fn close(&mut self, at: usize) {
        self.done.extend(self.open.remove(at).finish());
    }
}

/// Whether `next`, which has no prefix, is the rest of a line that ended early.
fn goes_on(pending: &Pending, next: &str) -> bool {
    // The range behind a bracket looks like a line of its own.
    if pending.text.ends_with(" overwritten]") {
        return next.trim_start().starts_with("0x");
    }
    if pending.parts >= MAX_PARTS || !pending.read.wants(next) {
        return false;
    }
    let mid_name = [" in", " from"]
        .iter()
        .any(|end| pending.text.ends_with(end));
    item::read(next).is_none() && (mid_name || frame::read(next).is_none())
}
