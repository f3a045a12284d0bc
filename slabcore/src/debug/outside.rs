//! Reports of freed pointers that are of no slab: there is only the caller to show.

use super::operation::{Operation, now_ns, thread_name};
use super::reason::Reason;
use super::report::{NOT_TAINTED, Reporter, SlabView, TAINTED, Trace};
use super::symbols::Later;
use crate::engine::EngineCore;
use crate::finding::Finding;
use crate::sync::Ordering::Relaxed;

/// Writes the report of `reason`, which is about `pointer`, for a cache of a name.
pub(crate) fn outside(
    engine: &EngineCore,
    op: &mut Operation,
    cache: &str,
    (reason, pointer): (Reason, usize),
    finding: Finding,
) {
    let tainted = engine.faults.fetch_add(1, Relaxed) > 0;
    op.found(finding);
    let mut name = [0; 16];
    let track = op.track;
    let (text, frames, _) = op.parts();
    let shown = (!frames.is_empty()).then(|| Trace {
        cpu: track.cpu,
        thread: track.thread,
        name: thread_name(&mut name),
        frames,
    });
    let reporter = Reporter {
        cache,
        taint: if tainted { TAINTED } else { NOT_TAINTED },
        slab: SlabView::default(),
        depot: None,
        symbols: &Later,
        now_ns: now_ns(),
        trace: shown,
    };
    // Writing to a text does not fail; what does not fit is cut.
    let _ = reporter.outside(text, reason, pointer as u64);
}
