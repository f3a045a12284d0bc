//! A report that is being read: takes the lines that belong to it.
//!
//! Purpose: the order of lines. Every kind of report takes its own lines in
//! any order, since the order moved between versions and logs lose lines; what
//! it does not take is left to others. Bounds: see `report.rs`.

mod foreign;
mod slub;

use super::item::{FailureCache, Item};
use super::oom;
use super::report::{
    AllocationFailure, Body, Corruption, Detected, Foreign, Frame, MAX_FRAMES, MAX_PARTS, MAX_ROWS,
    Overwritten, Report, SlabError, Slub, Stack, Track,
};

/// Lines of an out-of-memory report that are kept, and their bytes.
const OOM_LINES: u32 = 8192;
const OOM_BYTES: usize = 1 << 20;

/// Where frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    None,
    Allocated,
    Freed,
    Remaining,
    Trace,
}

/// A report that is being read.
#[derive(Debug)]
pub(super) struct Open {
    pub report: Report,
    /// Lines since one was taken.
    pub quiet: u32,
    target: Target,
    /// `[.. overwritten]` lines after the report, which a repair makes part of
    /// it and a banner makes part of the next one.
    later: Vec<(u64, Overwritten)>,
    /// SLAB: lines on a neighbour follow.
    neighbour: bool,
    /// The text of an out-of-memory report.
    text: String,
    text_lines: u32,
}

impl Open {
    /// A report that begins with `item`; `None` when no report does.
    pub fn begin(item: Item, complete: bool) -> Option<Self> {
        let (body, target) = match item {
            Item::Banner {
                cache,
                taint,
                reason,
            } => {
                let slub = Slub {
                    cache: Some(cache),
                    taint,
                    reason: Some(reason),
                    ..Slub::default()
                };
                (Body::Slub(Box::new(slub)), Target::None)
            }
            Item::SlabError {
                function,
                cache,
                message,
            } => {
                let error = SlabError {
                    function,
                    cache,
                    message,
                    ..SlabError::default()
                };
                (Body::SlabError(Box::new(error)), Target::Trace)
            }
            Item::Corruption {
                cache,
                taint,
                start,
                len,
            } => {
                let found = Corruption {
                    cache,
                    taint,
                    start,
                    len,
                    ..Corruption::default()
                };
                (Body::Corruption(Box::new(found)), Target::None)
            }
            Item::Failure { node, gfp } => {
                let failure = AllocationFailure {
                    headed: true,
                    node,
                    gfp,
                    ..AllocationFailure::default()
                };
                (Body::AllocationFailure(Box::new(failure)), Target::Trace)
            }
            Item::Foreign {
                tool,
                kind,
                function,
                size,
                address,
            } => {
                let found = Foreign {
                    size,
                    address,
                    ..Foreign::new(tool, kind, function)
                };
                (Body::Foreign(Box::new(found)), Target::None)
            }
            Item::Oom { comm, order } => {
                (Body::Oom(Box::new(oom::begun(comm, order))), Target::None)
            }
            Item::MemInfo | Item::SlabTable => {
                (Body::Oom(Box::new(oom::begun(None, None))), Target::None)
            }
            item => return Self::simple(&item).or_else(|| Self::headless(item, complete)),
        };
        Some(Self::of(body, target))
    }

    /// Reports of one line and a stack.
    fn simple(item: &Item) -> Option<Self> {
        use super::report::{CacheDestroy, KernelBug, Usercopy, Validator, WrongCache};
        let body = match item.clone() {
            Item::Destroy { cache, from } => Body::CacheDestroy(CacheDestroy { cache, from }),
            Item::WrongCache {
                freed_to,
                object_of,
                object,
            } => Body::WrongCache(WrongCache {
                freed_to,
                object_of,
                object,
            }),
            Item::Usercopy {
                exposure,
                cache,
                offset,
                size,
            } => Body::Usercopy(Usercopy {
                exposure,
                cache,
                offset,
                size,
            }),
            Item::Validator {
                cache,
                partial,
                counted,
                counter,
            } => Body::Validator(Validator {
                cache,
                partial,
                counted,
                counter,
            }),
            Item::KernelBug(place) => Body::KernelBug(KernelBug { place }),
            Item::Remark(remark) => Body::Remark(remark),
            _ => return None,
        };
        Some(Self::of(body, Target::None))
    }

    /// A report whose first lines were lost.
    fn headless(item: Item, complete: bool) -> Option<Self> {
        let body = match &item {
            Item::FailureCache(_) | Item::FailureNode(_) => Body::AllocationFailure(Box::default()),
            Item::Overwritten(_)
            | Item::Allocated(_)
            | Item::Freed(_)
            | Item::Slab(_)
            | Item::Object(_)
            | Item::Fix { .. }
                if complete =>
            {
                Body::Slub(Box::default())
            }
            _ => return None,
        };
        let mut open = Self::of(body, Target::None);
        open.take(item, 0, false).is_ok().then_some(open)
    }

    fn of(body: Body, target: Target) -> Self {
        Self {
            report: Report {
                lines: (0, 0),
                stamp: None,
                caller: None,
                detected: Detected::default(),
                body,
            },
            quiet: 0,
            target,
            later: Vec::new(),
            neighbour: false,
            text: String::new(),
            text_lines: 0,
        }
    }

    /// Whether a stack is being read.
    pub fn in_stack(&self) -> bool {
        self.target != Target::None
    }

    /// Takes a frame of the stack that is being read.
    pub fn frame(&mut self, frame: Frame) {
        let stack = match (self.target, &mut self.report.body) {
            (Target::Trace, _) => Some(&mut self.report.detected.stack),
            (Target::Allocated, Body::Slub(slub)) => stack_of(&mut slub.allocated),
            (Target::Freed, Body::Slub(slub)) => stack_of(&mut slub.freed),
            (Target::Remaining, Body::Slub(slub)) => slub
                .remaining
                .last_mut()
                .and_then(|r| stack_of(&mut r.allocated)),
            (Target::Allocated, Body::Foreign(found)) => stack_of(&mut found.allocated),
            (Target::Freed, Body::Foreign(found)) => stack_of(&mut found.freed),
            _ => None,
        };
        if let Some(stack) = stack
            && stack.frames.len() < MAX_FRAMES
        {
            stack.frames.push(frame);
        }
    }

    /// Takes a line that is nothing by itself. False when it does not belong here.
    pub fn text(&mut self, line: &str) -> bool {
        let fits = matches!(self.report.body, Body::Oom(_))
            && self.text_lines < OOM_LINES
            && self.text.len() + line.len() < OOM_BYTES;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
            self.text_lines += 1;
        }
        fits
    }

    /// Whether the table of caches and its figures are over.
    pub fn ends_with(&self, item: &Item) -> bool {
        matches!((&self.report.body, item), (Body::Oom(_), Item::EndOom))
    }

    /// Takes a line, or gives it back.
    pub fn take(&mut self, item: Item, number: u64, info: bool) -> Result<(), Item> {
        match item {
            // Every report may have these once; later ones are another trace.
            Item::Cpu {
                cpu,
                pid,
                comm,
                taint,
                kernel,
            } if self.report.detected.comm.is_none() || self.report.detected.kernel.is_none() => {
                let found = &mut self.report.detected;
                found.cpu = found.cpu.or(cpu);
                found.pid = found.pid.or(pid);
                found.comm.get_or_insert(comm);
                found.taint = found.taint.take().or(taint);
                found.kernel = found.kernel.take().or(kernel);
                // arm prints its frames without a heading.
                self.target = Target::Trace;
                Ok(())
            }
            Item::Warning { cpu, pid, comm } if self.report.detected.pid.is_none() => {
                let found = &mut self.report.detected;
                found.cpu = found.cpu.or(cpu);
                found.pid = found.pid.or(pid);
                found.comm = found.comm.take().or(comm);
                self.target = Target::None;
                Ok(())
            }
            Item::Instruction(symbol) if self.report.detected.instruction.is_none() => {
                self.report.detected.instruction = Some(symbol);
                Ok(())
            }
            Item::CallTrace if self.report.detected.stack.frames.is_empty() => {
                self.target = Target::Trace;
                Ok(())
            }
            Item::EndTrace if self.target == Target::Trace => {
                self.target = Target::None;
                Ok(())
            }
            Item::Cpu { .. }
            | Item::Warning { .. }
            | Item::CallTrace
            | Item::Rule
            | Item::CutHere
            | Item::EndTrace => {
                self.target = Target::None;
                Err(item)
            }
            item => self.own(item, number, info),
        }
    }

    /// Takes a line of this kind of report.
    fn own(&mut self, item: Item, number: u64, info: bool) -> Result<(), Item> {
        match &mut self.report.body {
            Body::Slub(_) => self.slub(item, number, info),
            Body::Corruption(_) => self.corruption(item),
            Body::SlabError(error) => match item {
                Item::RedzonePair { object, words } if error.redzones.is_none() => {
                    error.object = object;
                    error.redzones = Some(words);
                    self.target = Target::None;
                    Ok(())
                }
                item => Err(item),
            },
            Body::AllocationFailure(failure) => failed(failure, item),
            Body::Foreign(_) => self.foreign(item),
            Body::Oom(_) => match item {
                Item::MemInfo => {
                    self.text("Mem-Info:");
                    Ok(())
                }
                Item::SlabTable => {
                    self.text("Unreclaimable slab info:");
                    Ok(())
                }
                item => Err(item),
            },
            _ => Err(item),
        }
    }

    fn corruption(&mut self, item: Item) -> Result<(), Item> {
        let Body::Corruption(found) = &mut self.report.body else {
            return Err(item);
        };
        match item {
            Item::Neighbour => {
                self.neighbour = true;
                found.neighbours += 1;
            }
            Item::Redzones(..) | Item::LastUser(_) | Item::SlabRow(_) if self.neighbour => {}
            Item::Redzones(first, second) => found.redzones = Some((first, second)),
            Item::LastUser(symbol) => found.last_user = Some(symbol),
            Item::SlabRow(row) if found.rows.len() < MAX_ROWS => found.rows.push(row),
            Item::SingleBit => found.single_bit = true,
            item => return Err(item),
        }
        Ok(())
    }

    /// Lines that belong to the report that follows, with the first one's number.
    pub fn take_later(&mut self) -> Vec<(u64, Overwritten)> {
        std::mem::take(&mut self.later)
    }

    /// The report, as far as it went.
    pub fn finish(mut self) -> Option<Report> {
        match &mut self.report.body {
            Body::Slub(slub) => {
                let more = self.later.drain(..).map(|(_, found)| found);
                slub.overwritten.extend(more);
            }
            Body::Oom(found) => {
                oom::finish(found, &self.text);
                if !oom::tells_of_slab(found) {
                    return None;
                }
            }
            _ => {}
        }
        Some(self.report)
    }
}

fn stack_of(track: &mut Option<Track>) -> Option<&mut Stack> {
    track.as_mut().map(|track| &mut track.stack)
}

fn failed(failure: &mut AllocationFailure, item: Item) -> Result<(), Item> {
    match item {
        Item::FailureCache(found) if failure.cache.is_none() && failure.nodes.is_empty() => {
            let FailureCache {
                cache,
                object_size,
                slot_size,
                order,
                min_order,
            } = found;
            failure.cache = Some(cache);
            failure.object_size = object_size;
            failure.slot_size = slot_size;
            failure.order = order;
            failure.min_order = min_order;
        }
        Item::FailureNode(node) if failure.nodes.len() < MAX_PARTS => failure.nodes.push(node),
        Item::FailureDebug => failure.debug_order = true,
        item => return Err(item),
    }
    Ok(())
}
