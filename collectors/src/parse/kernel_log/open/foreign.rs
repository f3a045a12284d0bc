//! The lines of another tool's report.

use super::{Open, Target};
use crate::parse::kernel_log::foreign::Part;
use crate::parse::kernel_log::item::{Item, clip};
use crate::parse::kernel_log::report::{Body, Stack, Tool, Track};

impl Open {
    pub(super) fn foreign(&mut self, item: Item) -> Result<(), Item> {
        let Body::Foreign(found) = &mut self.report.body else {
            return Err(item);
        };
        match item {
            // One heading for each inlined function, the innermost first.
            Item::Foreign { tool, function, .. }
                if tool == found.tool && tool == Tool::Kasan && found.access.is_none() =>
            {
                found.function = function;
            }
            Item::Part(part) => self.part(part),
            item => return Err(item),
        }
        Ok(())
    }

    fn part(&mut self, part: Part) {
        let Body::Foreign(found) = &mut self.report.body else {
            return;
        };
        self.target = Target::None;
        match part {
            Part::Access {
                access,
                size,
                address,
                by,
            } => {
                found.access = Some(access);
                found.size = size;
                found.address = address;
                let who = by.as_deref().and_then(|by| by.rsplit_once('/'));
                self.report.detected.comm = who.map(|(comm, _)| clip(comm));
                self.report.detected.pid = who.and_then(|(_, pid)| pid.parse().ok());
            }
            Part::Cache { name, size } => {
                found.cache = Some(name);
                found.object_size = size;
            }
            Part::Place(place) => found.place = Some(place),
            Part::AllocatedBy(pid) => {
                found.allocated = Some(task(pid));
                self.target = Target::Allocated;
            }
            Part::FreedBy(pid) => {
                found.freed = Some(task(pid));
                self.target = Target::Freed;
            }
            Part::Comm { comm, pid } => {
                self.report.detected.comm = Some(comm);
                self.report.detected.pid = pid;
            }
            Part::Backtrace => self.target = Target::Trace,
        }
    }
}

fn task(pid: Option<u64>) -> Track {
    Track {
        symbol: String::new(),
        age: None,
        cpu: None,
        pid,
        stack: Stack::default(),
    }
}
