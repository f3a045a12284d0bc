//! Which caches the user asked to be validated, and which of them the kernel checks.

use collectors::Error;
use collectors::analysis::validate;
use collectors::control::{CacheDir, Control};
use collectors::model::{Cache, Flag, Quantity, Snapshot};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source as _};

use crate::cli::Validate as Args;
use crate::cmd::{Context, shrink};
use crate::fail::Failure;
use crate::open;

/// A cache that was asked for.
#[derive(Debug)]
pub(crate) struct Candidate<'s> {
    /// What the user called it, else its own name.
    pub(crate) called: String,
    pub(crate) cache: &'s Cache,
    pub(crate) dir: CacheDir,
    /// How far the kernel's look goes; `None` when it refuses.
    pub(crate) reach: Option<validate::Reach>,
}

impl Candidate<'_> {
    pub(crate) fn checks(&self) -> Vec<&'static str> {
        validate::checks(self.cache)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.cache.names().map(str::to_owned).collect()
    }
}

/// The caches with what decides whether they are checked.
pub(super) fn sample(context: &Context) -> Result<Snapshot, Failure> {
    let root = context.global.root.as_deref().unwrap_or("/".as_ref());
    let tree = DirTree::trusted(root).map_err(|e| Error::from_io(root, e))?;
    let mut demand = Demand::names().with(&[Quantity::Slabs, Quantity::Partial]);
    demand.flags = Flag::ALL.to_vec();
    let sample = KernelSource::live(Box::new(tree)).sample(&demand);
    sample.map_err(open::with_hints)
}

/// The caches that are named, or all of them; each once.
pub(super) fn candidates<'s>(
    control: &Control,
    snapshot: &'s Snapshot,
    args: &Args,
) -> Result<Vec<Candidate<'s>>, Failure> {
    let kernel = snapshot.system.kernel.as_deref();
    let mut list: Vec<Candidate<'s>> = Vec::new();
    let mut add = |called: String, dir: CacheDir| {
        let is = |c: &&Cache| c.sysfs_id.as_deref().unwrap_or(&c.name) == dir.id;
        let cache = snapshot.caches.iter().find(is);
        let known = list.iter().any(|one| one.dir == dir);
        if let Some(cache) = cache.filter(|_| !known) {
            list.push(Candidate {
                called,
                cache,
                reach: validate::reach(cache, kernel),
                dir,
            });
        }
    };
    if args.caches.is_empty() {
        for cache in &snapshot.caches {
            let id = cache.sysfs_id.as_deref().unwrap_or(&cache.name);
            if let Some(dir) = control.find(id).map_err(open::with_hints)? {
                add(cache.name.to_string(), dir);
            }
        }
    } else {
        let dirs = shrink::find(control, &args.caches)?;
        for (name, dir) in args.caches.iter().zip(dirs) {
            add(name.clone(), dir);
        }
    }
    Ok(list)
}
