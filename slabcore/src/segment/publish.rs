//! Publishing: figures are copied into the segment on slow paths, now and then.
//!
//! One thread at a time, without waiting and without allocating: who finds another thread at
//! it, or the registry's lock held, goes on. A pass over many rows is done in parts. What a
//! request asks for is done by the thread that finds it, which is in no operation then.

use super::format::{
    CACHES, CACHES_ROOM, ENGINES, ENGINES_ROOM, MAILBOX, head, mailbox, record, state,
};
use super::live::{Live, Own, own};
use super::{figures, make};
use crate::core::CacheCore;
use crate::debug::operation::now_ns;
use crate::engine::{self, Engine, EngineCore};
use crate::fork;
use crate::generation::{Generation, Requests};
use crate::slab::NIL;
use crate::slot;
use crate::stats::{Counters, STATS, Stat};
use crate::sync::{AtomicU32, Ordering, Ordering::Relaxed};
use crate::sys;
use crate::validate::Validation;
use std::time::Duration;

/// Milliseconds between two passes.
pub(super) const EVERY_MS: u64 = 250;
/// How long a watcher is waited for: two seconds until it begins to look, then a minute.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: [u32; 2] = [2_000, 60_000];
/// Rows that are summed up in one go.
const ROWS_AT_ONCE: usize = 16 << 10;

/// A thread is on a slow path, in no operation and with no lock; `settled`: not on one of its
/// first, so that there is something to publish even if the process has just begun.
#[cold]
pub(crate) fn look(settled: bool) {
    let Some(own) = own() else {
        return;
    };
    let Some(live) = make::ensure() else {
        return;
    };
    if let Some(request) = requests(live).take() {
        serve(own, live, request);
        return;
    }
    let due = sys::coarse_ms() >= own.due.load(Relaxed);
    if due || (settled && live.word(head::PASS[1]).load(Relaxed) == 0) {
        some(own, live, ROWS_AT_ONCE);
    }
}

fn requests(live: Live) -> Requests<'static> {
    Requests {
        request: live.word(MAILBOX.at + mailbox::REQUEST),
        taken: live.word(MAILBOX.at + mailbox::TAKEN),
        done: live.word(MAILBOX.at + mailbox::DONE),
    }
}

fn serve(own: &Own, live: Live, request: u64) {
    match request & 0xff {
        mailbox::PUBLISH => all(own, live),
        mailbox::VALIDATE => validate(live),
        // Any thread may find what is for the one that waits.
        mailbox::STAY => own.looks.store(1, Relaxed),
        mailbox::LEAVE => own.left.store(1, Relaxed),
        // What a newer reader asks stays unanswered: an honest "not acknowledged".
        _ => return,
    }
    requests(live).finish(request);
}

/// Validates all engines and writes the findings down.
fn validate(live: Live) {
    let mut sums = [0u64; 5];
    let mut n = 0;
    let mut last = None;
    while let Some(engine) = after(last.as_ref()) {
        let found = engine.validate();
        last = Some(engine);
        let Validation {
            caches,
            slabs,
            unchecked,
            moving,
            more,
            ..
        } = found;
        let counts = [caches, slabs, unchecked, moving, more];
        for (sum, value) in sums.iter_mut().zip(counts) {
            *sum += value;
        }
        for finding in &found.findings {
            if n == mailbox::ROOM {
                sums[4] += 1;
                continue;
            }
            let at = MAILBOX.at + mailbox::LIST + n * mailbox::FINDING_BYTES;
            live.put_two(at + mailbox::CACHE, finding.cache, finding.node);
            live.put(at + mailbox::SLAB, finding.slab.unwrap_or(0) as u64);
            live.put_text(at + mailbox::CODE, mailbox::CODE_BYTES, finding.kind.code());
            let text = finding.kind.to_string();
            live.put_text(at + mailbox::TEXT, mailbox::TEXT_BYTES, &text);
            n += 1;
        }
    }
    for (value, at) in sums
        .into_iter()
        .zip((MAILBOX.at + mailbox::COUNTS..).step_by(8))
    {
        live.put(at, value);
    }
    live.put(MAILBOX.at + mailbox::FINDINGS, n as u64);
}

/// The engine behind one of the list, or the first. An engine that is held stays in the list.
fn after(last: Option<&Engine>) -> Option<Engine> {
    engine::with_registry(|| {
        let mut all = engine::registered();
        if let Some(last) = last {
            all.find(|core| std::ptr::eq(*core, last.core))?;
        }
        let core = all.find(|core| core.try_add_ref())?;
        Some(Engine { core })
    })
}

/// A whole pass, now.
fn all(own: &Own, live: Live) {
    own.done.store(0, Relaxed);
    some(own, live, usize::MAX);
}

/// Publishes caches from where the last part of the pass ended, as many as `rows` allow.
fn some(own: &Own, live: Live, rows: usize) {
    let turn = own.busy.compare_exchange(0, 1, Ordering::AcqRel, Relaxed);
    if turn.is_err() {
        return;
    }
    engine::try_registry(|| part(own, live, rows));
    own.busy.store(0, Ordering::Release);
}

/// A part of a pass; the registry's lock is held, so no cache goes away.
fn part(own: &Own, live: Live, mut rows: usize) {
    let from = own.done.load(Relaxed);
    if from == 0 {
        live.put(head::PASS[0], now_ns());
        engines(live);
    }
    let caches = engine::registered()
        .zip(1u32..)
        .flat_map(|(engine, number)| engine.caches().map(move |cache| (number, cache)));
    let mut n = 0;
    for (number, cache) in caches {
        n += 1;
        if n <= from || n > CACHES_ROOM {
            continue;
        }
        if rows == 0 {
            own.done.store(n - 1, Relaxed);
            return;
        }
        rows = rows.saturating_sub(slot::used() as usize);
        put_cache(live, n - 1, number, cache);
    }
    for unused in n..CACHES_ROOM {
        let at = CACHES.at + unused * record::BYTES;
        // Used ones come first.
        if live.word(at + record::ENGINE).load(Relaxed) == 0 {
            break;
        }
        generation(live, at).change(|| live.put(at + record::ENGINE, 0));
    }
    live.put(head::LEFT_OUT, n.saturating_sub(CACHES_ROOM) as u64);
    live.put(head::PASS[1], now_ns());
    live.put(head::PASS_REAL, sys::real_ns());
    own.done.store(0, Relaxed);
    own.due.store(sys::coarse_ms() + EVERY_MS, Relaxed);
}

fn generation(live: Live, at: usize) -> Generation<'static> {
    Generation {
        first: live.word(at + record::GENERATION[0]),
        second: live.word(at + record::GENERATION[1]),
    }
}

fn engines(live: Live) {
    let mut engines = engine::registered().zip(1u32..);
    for place in 0..ENGINES_ROOM {
        let at = ENGINES.at + place * record::BYTES;
        let next = engines.next();
        if next.is_none() && live.word(at + record::ENGINE).load(Relaxed) == 0 {
            return;
        }
        generation(live, at).change(|| {
            let number = next.map_or(0, |(_, number)| number);
            live.put(at + record::TIME, now_ns());
            live.put_two(at + record::ENGINE, number, 0);
            if let Some((core, _)) = next {
                put_values(live, at, &engine_values(core));
            }
        });
    }
}

fn engine_values(core: &EngineCore) -> [u64; 8] {
    let [reserved, used, peak, decommitted, failed] = figures::of_pages(&core.pages);
    let large = (
        core.large_count.load(Relaxed),
        core.large_bytes.load(Relaxed),
    );
    let faults = core.faults.load(Relaxed);
    [
        reserved,
        used,
        peak,
        decommitted,
        failed,
        large.0,
        large.1,
        faults,
    ]
}

fn put_values(live: Live, at: usize, values: &[u64]) {
    for (value, at) in values.iter().zip((at + record::VALUES..).step_by(8)) {
        live.put(at, *value);
    }
}

fn put_cache(live: Live, place: usize, engine: u32, cache: &CacheCore) {
    let at = CACHES.at + place * record::BYTES;
    let counters = cache.counters();
    let values = cache_values(cache, &counters);
    generation(live, at).change(|| {
        live.put(at + record::TIME, now_ns());
        live.put_two(at + record::ENGINE, engine, cache.id);
        live.put_text(at + record::NAME, record::NAME_BYTES, cache.name);
        put_values(live, at, &values);
        let from = at + figures::CACHE.len() * 8;
        for (stat, n) in Stat::ALL.iter().zip((0..STATS).map(|n| n * 8)) {
            live.put(from + record::VALUES + n, counters.get(*stat));
        }
    });
}

/// In the order of [`figures::CACHE`].
fn cache_values(cache: &CacheCore, counters: &Counters) -> [u64; figures::CACHE.len()] {
    let mut rows = [0u64; 4];
    for row in cache.used_rows() {
        let of = [
            u64::from(row.slab.load(Relaxed) != NIL),
            row.nr_partial.load(Relaxed).into(),
            row.nr_full.load(Relaxed).into(),
            u64::from(row.n.load(Relaxed)) + u64::from(row.spare_n.load(Relaxed)),
        ];
        for (sum, value) in rows.iter_mut().zip(of) {
            *sum += value;
        }
    }
    let mut nodes = [0u64; 3];
    for part in cache.nodes.iter().take(cache.engine.nodes()) {
        nodes[0] += part.node.total_objects.load(Relaxed);
        nodes[1] += part.node.nr_slabs.load(Relaxed);
        nodes[2] += u64::from(part.node.nr_partial());
    }
    let hooks = cache.hooks;
    let (faults, quarantined) = hooks.map_or((0, 0), crate::hooks::DebugHooks::counts);
    let layout = hooks.and_then(crate::hooks::DebugHooks::layout);
    [
        cache.object_size.into(),
        cache.size.into(),
        cache.align.into(),
        cache.objects.into(),
        cache.order.into(),
        cache.outside.policy.into(),
        layout.map_or(0, |layout| layout.flags().bits().into()),
        cache.min_partial.load(Relaxed).into(),
        cache.cpu_partial.into(),
        cache.sheaf_capacity.into(),
        cache.refs.load(Relaxed).saturating_sub(1).into(),
        counters.live(),
        nodes[0],
        nodes[1],
        nodes[2],
        rows[0],
        rows[1],
        rows[2],
        rows[3],
        cache.engine.nodes() as u64,
        faults,
        quarantined,
    ]
}

/// A report was made, and no lock is held; `last`: the process is about to end.
pub(crate) fn after_report(last: bool) {
    super::event(super::Event::Report, 0, [0, 0]);
    if let (Some(own), Some(live)) = (own(), Live::current()) {
        if last {
            live.put(head::STATE, state::FAULT);
        }
        all(own, live);
    }
}

/// Has the last figures published when the process ends.
pub(super) fn at_exit_once() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if ASKED.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: the handler is a function of this program. If it cannot be registered, the
        // last figures are up to EVERY_MS old.
        unsafe { libc::atexit(at_exit) };
    }
}

/// The process ends by `_exit`, which runs no handlers: perhaps in a handler of a signal, or as
/// a child of `vfork`, which has its parent's memory.
pub fn before_exit() {
    let (Some(own), Some(live)) = (own(), Live::current()) else {
        return;
    };
    // Else nobody would see it, and the system is not to be asked for nothing.
    let seen = own.outlives.load(Relaxed) != 0 || make::has_watcher();
    let ended = live.word(head::STATE).load(Relaxed) == state::ENDED;
    if seen && !ended && own.pid.load(Relaxed) == sys::pid() {
        // A signal handler may end the process in the middle of an allocation.
        end(own, live, slot::own().is_none_or(fork::is_interrupted));
    }
}

extern "C" fn at_exit() {
    if let (Some(own), Some(live)) = (own(), Live::current()) {
        end(own, live, false);
    }
}

/// `interrupted`: this thread may hold locks of the engine.
fn end(own: &Own, live: Live, interrupted: bool) {
    all(own, live);
    if make::is_watched() {
        wait(own, live, interrupted);
    }
    live.put(head::STATE, state::ENDED);
}

/// Waits until the watcher has looked, or is gone, or takes too long.
fn wait(own: &Own, live: Live, interrupted: bool) {
    live.word(head::STATE)
        .store(state::ENDING, Ordering::Release);
    let mut waits = 0;
    loop {
        if let Some(request) = requests(live).take() {
            // To validate takes locks, and would wait for itself.
            if interrupted && request & 0xff == mailbox::VALIDATE {
                requests(live).finish(request | mailbox::REFUSED);
            } else {
                serve(own, live, request);
            }
        }
        let [unseen, seen] = WAITS;
        let most = if own.looks.load(Relaxed) == 0 {
            unseen
        } else {
            seen
        };
        if own.left.load(Relaxed) != 0 || waits == most || !make::is_watched() {
            return;
        }
        waits += 1;
        std::thread::sleep(WAIT);
    }
}
