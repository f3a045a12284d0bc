//! `slabctl sites CACHE --live`: what is allocated from now on and not freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use collectors::model::{CacheId, Snapshot};
use collectors::source::bpf::LiveSites;
use signal_hook::consts::SIGINT;

use crate::cli::Sites as Args;
use crate::cmd::Context;
use crate::fail::{Failure, Status};
use crate::{interval, open};

/// How soon an interrupt is noticed.
const STEP: Duration = Duration::from_millis(50);

/// Follows the objects of the cache for the time that was asked for, and puts
/// what is left into the snapshot as its call sites.
pub(super) fn follow(
    context: &Context,
    args: &Args,
    name: &str,
    snapshot: &mut Snapshot,
) -> Result<(), Failure> {
    let time = interval::parse(&args.time)?;
    let chosen: Vec<CacheId> = snapshot.named(name).map(|cache| cache.id).collect();
    let mut caches = snapshot.caches.iter_mut();
    let [id] = chosen[..] else {
        return Err(Failure::usage("sites --live follows one cache"));
    };
    let Some(cache) = caches.find(|cache| cache.id == id) else {
        return Ok(());
    };
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))
        .map_err(|error| Failure::new(Status::Failed, error.to_string()))?;
    let refused = |refusal| open::refused("--live", &refusal);
    let live = LiveSites::open(cache.names(), args.sample).map_err(refused)?;
    context.note(&format!(
        "following what {name} allocates for {:.1} s; an interrupt ends it early",
        time.as_secs_f64()
    ));
    let start = Instant::now();
    while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STEP.min(time.saturating_sub(start.elapsed())));
    }
    let sites = live.sites(&mut snapshot.warnings).map_err(refused)?;
    cache.sites = Some(Box::new(sites));
    context.note(&format!(
        "what was allocated in {:.1} s and not freed",
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}
