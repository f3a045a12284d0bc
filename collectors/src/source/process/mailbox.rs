//! Asking a process to check itself, through the mailbox of its segment.
//!
//! The request is a word that its threads look at on slow paths. Who asks waits for a bounded
//! time; no answer is an answer.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use slabcore::inspect;
use slabcore::segment::Answer;

use crate::error::Error;
use crate::source::verdict::{Fault, Verdict};

/// Has a process validate itself; `None` if it did not answer in time. `names`: of the caches
/// of its engines.
pub(super) fn validate(
    pid: u32,
    names: &[BTreeMap<u32, String>],
    wait: Duration,
) -> Result<Option<Verdict>, Error> {
    let answer = inspect::ask_to_validate(pid, wait).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Error::Permission {
            path: format!("/proc/{pid}/fd").into(),
        },
        _ => super::unavailable(pid, error.to_string()),
    })?;
    Ok(answer.map(|answer| verdict(&answer, names)))
}

fn verdict(answer: &Answer, names: &[BTreeMap<u32, String>]) -> Verdict {
    let mut verdict = Verdict {
        caches: answer.caches,
        slabs: answer.slabs,
        passes: 1,
        unchecked: answer.unchecked,
        moving: answer.moving,
        more: answer.more,
        ..Verdict::default()
    };
    for of in &answer.findings {
        // The answer does not tell the engine: a process with several has several of a number.
        let mut engines = names.iter().filter_map(|engine| engine.get(&of.cache));
        let name = engines.next().filter(|_| names.len() == 1);
        verdict.tell(Fault {
            cache: name
                .cloned()
                .unwrap_or_else(|| format!("cache {}", of.cache)),
            node: of.node,
            slab: of.slab,
            code: of.code.clone().into(),
            message: of.text.clone(),
        });
    }
    verdict
}
