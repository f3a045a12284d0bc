//! The findings of a log as a page for people.
//!
//! What follows from another finding is one line below it, unless all is asked
//! for; numbers are those of the whole list, so that sentences can name them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use collectors::analysis::explain::finding::{Damage, ObjectFacts};
use collectors::analysis::explain::{Class, Finding, who};
use collectors::parse::kernel_log::report::{Detected, Stack};

use super::Log;
use crate::output::text::safe;
use crate::screen::Screen;

/// Longest line; also of files and pipes, where a reader has no width.
const WIDTH: usize = 100;
/// Columns before the text of a labelled line.
const INDENT: usize = 14;
/// Consequences that are listed below a finding.
const MAX_THEN: usize = 12;
/// Functions named of the stack of the one who noticed.
const FRAMES: usize = 3;

/// Writes the findings of all logs.
pub(super) fn write(
    logs: &[Log],
    all: bool,
    screen: &Screen,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut page = Page {
        width: screen.width.unwrap_or(WIDTH).clamp(40, WIDTH),
        screen,
        out,
    };
    for (number, log) in logs.iter().enumerate() {
        if logs.len() > 1 {
            if number > 0 {
                writeln!(page.out)?;
            }
            let (on, off) = (screen.heading.render(), screen.heading.render_reset());
            writeln!(page.out, "{on}== {} =={off}", safe(&log.name))?;
        }
        page.log(log, all)?;
    }
    Ok(())
}

struct Page<'a, W> {
    width: usize,
    screen: &'a Screen,
    out: &'a mut W,
}

impl<W: Write> Page<'_, W> {
    fn log(&mut self, log: &Log, all: bool) -> io::Result<()> {
        let findings = &log.explanation.findings;
        for (at, finding) in findings.iter().enumerate() {
            if finding.consequence_of.is_none() || all {
                let also = log.also_in.get(&at);
                self.finding(at, finding, if all { &[] } else { findings }, also)?;
                writeln!(self.out)?;
            }
        }
        writeln!(self.out, "{}", summary(log))
    }

    fn finding(
        &mut self,
        at: usize,
        finding: &Finding,
        others: &[Finding],
        also: Option<&BTreeSet<String>>,
    ) -> io::Result<()> {
        let (on, off) = (
            self.screen.heading.render(),
            self.screen.heading.render_reset(),
        );
        let title = format!("{}. {}", at + 1, safe(&finding.headline));
        for (n, line) in wrapped(&title, self.width - 3).into_iter().enumerate() {
            writeln!(
                self.out,
                "{}{on}{line}{off}",
                if n > 0 { "   " } else { "" }
            )?;
        }
        self.labelled("class", &class(finding))?;
        self.labelled("where", &place(finding))?;
        if let Some(names) = also {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            self.labelled("also in", &names.join(", "))?;
        }
        for (label, text) in facts(finding) {
            self.labelled(label, &text)?;
        }
        for conclusion in &finding.conclusions {
            self.labelled(conclusion.confidence.name(), &conclusion.text)?;
        }
        for text in &finding.unknown {
            self.labelled("not known", text)?;
        }
        for text in &finding.next {
            self.labelled("next", text)?;
        }
        self.consequences(at, others)
    }

    fn consequences(&mut self, at: usize, others: &[Finding]) -> io::Result<()> {
        let follow = others.iter().filter(|f| f.consequence_of == Some(at));
        let count = follow.clone().count();
        for finding in follow.take(MAX_THEN) {
            let text = format!(
                "{}: {}{}",
                lines(finding),
                finding.headline,
                repeats(finding)
            );
            self.labelled("then", &text)?;
        }
        if count > MAX_THEN {
            self.labelled(
                "then",
                &format!("{} more (--all shows them)", count - MAX_THEN),
            )?;
        }
        Ok(())
    }

    fn labelled(&mut self, label: &str, text: &str) -> io::Result<()> {
        let room = self.width - INDENT;
        for (n, line) in wrapped(&safe(text), room).into_iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            writeln!(self.out, "   {label:<10} {line}")?;
        }
        Ok(())
    }
}

fn class(finding: &Finding) -> String {
    let title = finding.class.title();
    match &finding.reason {
        Some(reason) if finding.class != Class::OtherTool => {
            format!("{title} (the kernel: {reason})")
        }
        _ => title.to_owned(),
    }
}

fn lines(finding: &Finding) -> String {
    match finding.lines {
        (first, last) if first == last => format!("line {first}"),
        (first, last) => format!("lines {first}-{last}"),
    }
}

fn repeats(finding: &Finding) -> String {
    match finding.repeats {
        0 | 1 => String::new(),
        n => format!(", {n} times up to line {}", finding.last_line),
    }
}

fn place(finding: &Finding) -> String {
    let stamp = finding
        .stamp
        .as_ref()
        .map_or_else(String::new, |s| format!(", at {s}"));
    format!("{}{stamp}{}", lines(finding), repeats(finding))
}

/// The lines with values; those that are not known are left out.
fn facts(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut list = Vec::new();
    list.extend(
        finding
            .object
            .as_ref()
            .and_then(object)
            .map(|t| ("object", t)),
    );
    list.extend(finding.damage().and_then(damage).map(|t| ("damage", t)));
    if let Some(slab) = &finding.slab
        && let (Some(objects), Some(used)) = (slab.objects, slab.used)
    {
        list.push(("slab", format!("{objects} objects, {used} in use")));
    }
    list.extend(
        finding
            .allocated
            .as_ref()
            .map(|t| ("allocated", format!("by {}", who(t)))),
    );
    if let Some(track) = &finding.freed {
        let before = if finding.freed_before {
            ", in an earlier life"
        } else {
            ""
        };
        list.push(("freed", format!("by {}{before}", who(track))));
    }
    list.extend(noticed(finding).map(|t| ("found", t)));
    for site in &finding.left {
        let by = site
            .symbol
            .as_deref()
            .unwrap_or("somebody who was not tracked");
        list.push(("left", format!("{} allocated by {by}", site.objects)));
    }
    list.extend(
        finding
            .fixes
            .iter()
            .take(4)
            .map(|fix| ("repaired", fix.clone())),
    );
    list
}

fn object(facts: &ObjectFacts) -> Option<String> {
    let parts: Vec<String> = [
        facts
            .offset_in_slab
            .map(|n| format!("at offset {n} of its slab")),
        facts.address.map(|n| format!("at {n:#x}")),
        facts.size.map(|n| format!("{n} bytes")),
        facts.requested.map(|n| format!("{n} of them asked for")),
        facts.state.map(|state| state.name().to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn damage(damage: &Damage) -> Option<String> {
    let from = damage.offset_in_object?;
    let part = damage.part.name();
    let range = match damage.len.and_then(|n| i64::try_from(n).ok()) {
        Some(1) => format!("byte {from}"),
        Some(n) => format!("bytes {from} to {}", from.saturating_add(n - 1)),
        None => format!("from byte {from} on"),
    };
    Some(format!("{range} from the object's start ({part})"))
}

fn noticed(finding: &Finding) -> Option<String> {
    let detected = &finding.detected;
    let mut text = String::new();
    if let Some(operation) = finding.operation {
        text += "at the ";
        text += operation.name();
    }
    if let Some(by) = &finding.detected_by {
        text += if text.is_empty() { "by " } else { " by " };
        text += &callers(by, &detected.stack);
    }
    let task = task(detected);
    if !task.is_empty() {
        text += if text.is_empty() { "in " } else { ", in " };
        text += &task;
    }
    if let Some(kernel) = &detected.kernel {
        text += if text.is_empty() {
            "kernel "
        } else {
            ", kernel "
        };
        text += kernel;
    }
    (!text.is_empty()).then_some(text)
}

/// The function and those that called it.
fn callers(by: &str, stack: &Stack) -> String {
    let sure = stack.frames.iter().filter(|frame| !frame.guess);
    let from: Vec<&str> = sure
        .map(|frame| &*frame.symbol)
        .skip_while(|symbol| *symbol != by)
        .take(FRAMES)
        .collect();
    if from.is_empty() {
        return by.to_owned();
    }
    from.join(" < ")
}

fn task(who: &Detected) -> String {
    let details: Vec<String> = [
        who.pid.map(|n| format!("pid {n}")),
        who.cpu.map(|n| format!("cpu {n}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    match (who.comm.as_deref(), &*details.join(", ")) {
        (None | Some(""), details) => details.to_owned(),
        (Some(comm), "") => comm.to_owned(),
        (Some(comm), details) => format!("{comm} ({details})"),
    }
}

fn summary(log: &Log) -> String {
    let findings = &log.explanation.findings;
    let follow = findings
        .iter()
        .filter(|f| f.consequence_of.is_some())
        .count();
    let counted = |n: usize, thing: &str| format!("{n} {thing}{}", if n == 1 { "" } else { "s" });
    let lines = format!(
        "{} read",
        counted(usize::try_from(log.lines).unwrap_or(usize::MAX), "line")
    );
    let before = match usize::try_from(log.counted_before).unwrap_or(usize::MAX) {
        0 => String::new(),
        n => format!(", {} counted in an earlier log", counted(n, "report")),
    };
    if findings.is_empty() {
        let more = if before.is_empty() { "" } else { "further " };
        return format!("no {more}reports about slab memory{before}; {lines}");
    }
    let text = counted(findings.len() - follow, "finding");
    let follow = match follow {
        0 => String::new(),
        n => format!(" and {}", counted(n, "consequence")),
    };
    let more = match log.explanation.more {
        0 => String::new(),
        n => format!(", {n} more reports not shown"),
    };
    format!("{text}{follow}{more}{before}; {lines}")
}

/// The text in lines of at most `room` characters, where words allow it.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if used > 0 && used + 1 + len > room {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += len;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &[u8], all: bool) -> String {
        let mut out = Vec::new();
        let logs = [Log::read("log", text)];
        write(&logs, all, &Screen::plain(None), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    macro_rules! golden {
        ($name:ident, $file:literal) => {
            #[test]
            fn $name() {
                let text = include_bytes!(concat!("../../../../collectors/tests/data/log/", $file));
                insta::assert_snapshot!(stringify!($name), page(text, false));
            }
        };
    }

    golden!(
        overflow_of_a_kmalloc_object,
        "slub-6.6-kmalloc-redzone-arm.txt"
    );
    golden!(
        double_free_and_what_follows,
        "slub-5.9-double-free-ppc64-quoted.txt"
    );
    golden!(
        reference_count_after_free,
        "slub-5.9-refcount-ppc64-addr2line.txt"
    );
    golden!(bad_memory, "slab-bit-flip.txt");
    golden!(objects_left_behind, "remaining-6.2-dates-wrapped.txt");
    golden!(a_node_ran_dry, "failure-two-nodes.txt");
    golden!(kasan_named, "kasan-out-of-bounds.txt");

    #[test]
    fn lines_are_not_longer_than_they_may_be() {
        let text = include_bytes!("../../../../collectors/tests/data/log/usercopy-container.txt");
        for width in [40, 60, 90] {
            let mut out = Vec::new();
            let logs = [Log::read("log", text.as_slice())];
            write(&logs, false, &Screen::plain(Some(width)), &mut out).unwrap();
            for line in String::from_utf8(out).unwrap().lines() {
                let text: String = line.chars().skip(INDENT).collect();
                let one_word = !text.trim().contains(' ');
                assert!(line.chars().count() <= width || one_word, "{line}");
            }
        }
    }

    #[test]
    fn all_shows_consequences_in_full() {
        let text = include_bytes!(
            "../../../../collectors/tests/data/log/slub-5.9-double-free-ppc64-quoted.txt"
        );
        assert!(!page(text, false).contains("\n2. "));
        assert!(page(text, true).contains("\n2. kmalloc-16: a slab counts 174"));
    }

    #[test]
    fn a_log_without_reports_says_so() {
        assert_eq!(
            page(b"usb 1-1: x\ny\n", false),
            "no reports about slab memory; 2 lines read\n"
        );
    }
}
