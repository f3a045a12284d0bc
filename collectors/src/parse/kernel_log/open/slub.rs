//! The lines of a SLUB report.

use super::{Open, Target};
use crate::parse::kernel_log::item::Item;
use crate::parse::kernel_log::report::{
    Body, MAX_PARTS, MAX_REMAINING, MAX_ROWS, ObjectLine, Remaining, Slub,
};

impl Open {
    pub(super) fn slub(&mut self, item: Item, number: u64, info: bool) -> Result<(), Item> {
        let Body::Slub(slub) = &mut self.report.body else {
            return Err(item);
        };
        slub.info |= info;
        let mut target = Target::None;
        match item {
            Item::Banner {
                cache,
                taint,
                reason,
            } if slub.reason.is_none() && slub.slab.is_none() && slub.fixes.is_empty() => {
                slub.cache = Some(cache);
                slub.taint = taint;
                slub.reason = Some(reason);
            }
            Item::Overwritten(found) if found.what.is_some() && slub.reason.is_some() => {
                if self.later.len() < MAX_PARTS {
                    self.later.push((number, found));
                }
            }
            Item::Overwritten(found) if slub.overwritten.len() < MAX_PARTS => {
                slub.overwritten.push(found);
            }
            Item::Allocated(track) => match slub.remaining.last_mut() {
                Some(last) => {
                    last.allocated.get_or_insert(track);
                    target = Target::Remaining;
                }
                None if slub.allocated.is_none() => {
                    slub.allocated = Some(track);
                    target = Target::Allocated;
                }
                None => return Err(Item::Allocated(track)),
            },
            Item::Freed(track) if slub.freed.is_none() => {
                slub.freed = Some(track);
                target = Target::Freed;
            }
            Item::Slab(line) if slub.slab.as_ref().is_none_or(|s| s.pointer == line.pointer) => {
                slub.slab.get_or_insert(line);
            }
            Item::Object(object) => return remember(slub, object).map(|()| self.target = target),
            Item::InvalidPointer(pointer) => slub.invalid = slub.invalid.or(pointer),
            Item::Row(row) if slub.rows.len() < MAX_ROWS => slub.rows.push(row),
            Item::Row(_) => {}
            Item::Fix { cache, action } if slub.cache.as_ref().is_none_or(|c| *c == cache) => {
                slub.cache.get_or_insert(cache);
                let more = self.later.drain(..).map(|(_, found)| found);
                slub.overwritten.extend(more);
                slub.overwritten.truncate(MAX_PARTS);
                if slub.fixes.len() < MAX_PARTS {
                    slub.fixes.push(action);
                }
            }
            item => return Err(item),
        }
        self.target = target;
        Ok(())
    }
}

/// The object, or one of those that remain.
fn remember(slub: &mut Slub, object: ObjectLine) -> Result<(), Item> {
    let remaining = slub
        .reason
        .as_deref()
        .is_some_and(|r| r.starts_with("Objects remaining"));
    if !remaining {
        if slub.object.is_some() {
            return Err(Item::Object(object));
        }
        slub.object = Some(object);
    } else if slub.remaining.len() < MAX_REMAINING {
        slub.remaining.push(Remaining {
            object,
            allocated: None,
        });
    } else {
        slub.more_remaining += 1;
    }
    Ok(())
}
