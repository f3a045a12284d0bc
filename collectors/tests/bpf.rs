//! BPF programs in the running kernel: what they see is what its files say.
//!
//! These tests need root, a kernel that takes the programs, and /sys. Where
//! one of these is missing, each says so and checks nothing.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use collectors::model::{Cache, Objects, Quantity, Snapshot, Warnings};
use collectors::source::bpf::{self, Snapshots};
use collectors::source::kernel::KernelSource;
use collectors::source::tree::DirTree;
use collectors::source::{Demand, Source as _};

/// The programs, or a line on why they cannot be tested here.
fn programs() -> Option<Snapshots> {
    match Snapshots::open() {
        Ok(programs) => Some(programs),
        Err(refusal) => {
            eprintln!("skipped: no BPF here: {refusal}");
            None
        }
    }
}

fn files() -> KernelSource {
    KernelSource::live(Box::new(DirTree::trusted(Path::new("/")).unwrap()))
}

/// The figures that both see, as the kernel counts them.
fn kernels(cache: &Cache) -> [Option<u64>; 6] {
    let get = |q| cache.get(q).map(|figure| figure.value);
    let parked = get(Quantity::Parked).unwrap_or(0);
    [
        get(Quantity::Slabs),
        get(Quantity::TotalObjects),
        get(Quantity::Partial),
        get(Quantity::Objects).map(|objects| objects + parked),
        get(Quantity::ObjectsPartial),
        // No kernel of the sheaves has CPU slabs; its files say 0.
        Some(get(Quantity::CpuSlabs).unwrap_or(0)),
    ]
}

/// The kernel's `cpu_slabs` leaves the partial list of a processor out that has no slab in hand
/// (`show_slab_objects`, mm/slub.c): it may be the smaller one.
fn agree(files: &[Option<u64>; 6], programs: &[Option<u64>; 6]) -> bool {
    files[..5] == programs[..5] && files[5] <= programs[5]
}

fn by_id(snapshot: &Snapshot) -> BTreeMap<String, [Option<u64>; 6]> {
    let caches = snapshot.caches.iter();
    caches
        .filter_map(|cache| Some((cache.sysfs_id.as_deref()?.to_owned(), kernels(cache))))
        .collect()
}

/// The programs' figures of every cache that did not move are those of sysfs.
#[test]
fn quiet_caches_are_the_same_as_in_sysfs() {
    if programs().is_none() {
        return;
    }
    let mut demand = Demand::names().with(&[
        Quantity::Slabs,
        Quantity::TotalObjects,
        Quantity::Partial,
        Quantity::Objects,
        Quantity::ObjectsPartial,
        Quantity::CpuSlabs,
    ]);
    demand.exact = true;
    let (mut files, mut programs) = (files(), files().by_bpf());
    let mut compared = BTreeSet::new();
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    // On a busy machine some move and are back before the second look; one that
    // is wrong by nature is so every time.
    for _ in 0..60 {
        let before = by_id(&files.sample(&demand).unwrap());
        let seen = programs.sample(&demand).unwrap();
        let after = by_id(&files.sample(&demand).unwrap());
        let seen = by_id(&seen);
        assert!(seen.len() > 50, "{} caches", seen.len());
        for (id, figures) in &before {
            if after.get(id) != Some(figures) {
                continue;
            }
            if seen.get(id).is_some_and(|seen| agree(figures, seen)) {
                compared.insert(id.clone());
            } else {
                wrong.insert(id.clone(), format!("{figures:?} {:?}", seen.get(id)));
            }
        }
        let settled = |id: &String| compared.contains(id);
        if compared.len() * 10 > before.len() * 7 && wrong.keys().all(settled) {
            break;
        }
    }
    wrong.retain(|id, _| !compared.contains(id));
    assert!(wrong.is_empty(), "sysfs, programs: {wrong:#?}");
    assert!(compared.len() > 50, "only {} compared", compared.len());
}

/// What fixed attributes say is what the programs see.
#[test]
fn sizes_and_limits_are_those_of_sysfs() {
    if programs().is_none() {
        return;
    }
    let fixed = [
        Quantity::ObjectSize,
        Quantity::SlabSize,
        Quantity::ObjsPerSlab,
        Quantity::Order,
        Quantity::Align,
        Quantity::Usersize,
        Quantity::MinPartial,
        Quantity::CpuPartial,
        Quantity::SheafCapacity,
        Quantity::RemoteNodeDefragRatio,
    ];
    let demand = Demand::names().with(&fixed);
    let by_files = files().sample(&demand).unwrap();
    let by_programs = files().by_bpf().sample(&demand).unwrap();
    let mut compared = 0;
    for cache in &by_files.caches {
        let Some(id) = cache.sysfs_id.as_deref() else {
            continue;
        };
        let Some(other) = by_programs
            .named(id)
            .find(|c| c.sysfs_id.as_deref() == Some(id))
        else {
            continue;
        };
        for q in fixed {
            let value = |cache: &Cache| cache.get(q).map(|figure| figure.value);
            assert_eq!(value(cache), value(other), "{id} {}", q.name());
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

/// Objects in use are counted as such: those that this process makes, exactly
/// as many as the rest of the machine leaves room for.
#[test]
fn objects_in_use_follow_what_is_made_and_given_back() {
    const MADE: u64 = 3000;
    let Some(mut programs) = programs() else {
        return;
    };
    let mut inodes = || {
        let mut warnings = Warnings::default();
        let caches = programs
            .caches(&Demand::everything(), &mut warnings)
            .unwrap();
        // Its objects are freed by RCU, and by nobody else than their owner.
        let cache = caches.iter().find(|c| &*c.name == "eventpoll_epi").cloned();
        cache.map(|c| c.get(Quantity::Objects).unwrap().value)
    };
    let Some(before) = inodes() else {
        eprintln!("skipped: eventpoll_epi is merged into another cache here");
        return;
    };
    let watched = epoll::watch(MADE);
    let during = inodes().unwrap();
    drop(watched);
    let near = |made: u64| made.abs_diff(MADE) <= MADE / 10;
    assert!(near(during.saturating_sub(before)), "{before} {during}");
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let after = inodes().unwrap();
        if near(during.saturating_sub(after)) {
            return;
        }
        assert!(Instant::now() < deadline, "{before} {during} {after}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What is in use and near processors, by name.
fn seen(programs: &mut Snapshots) -> BTreeMap<String, [Option<u64>; 4]> {
    let caches = programs
        .caches(&Demand::everything(), &mut Warnings::default())
        .unwrap();
    let parts = |cache: &Cache| {
        let of = |q| cache.get(q).map(|figure| figure.value);
        [
            of(Quantity::Objects),
            of(Quantity::Parked),
            of(Quantity::CpuSlabs),
            of(Quantity::ObjectsCpuPartial),
        ]
    };
    let all = caches.iter();
    all.map(|cache| (cache.name.to_string(), parts(cache)))
        .collect()
}

/// Programs that ran before remember lists of quiet processors; what they tell is
/// what programs tell that see everything for the first time.
#[test]
fn a_later_pass_tells_what_a_first_one_does() {
    let Some(mut later) = programs() else {
        return;
    };
    let (mut same, mut wrong) = (BTreeSet::new(), BTreeMap::new());
    for _ in 0..30 {
        seen(&mut later);
        // Something happens in between.
        drop(epoll::watch(500));
        // Loaded before the first of the three, since programs are objects too.
        let (mut one, mut other) = (programs().unwrap(), programs().unwrap());
        let before = seen(&mut one);
        let figures = seen(&mut later);
        let after = seen(&mut other);
        for (name, first) in &before {
            if after.get(name) != Some(first) {
                continue;
            }
            if figures.get(name) == Some(first) {
                same.insert(name.clone());
            } else {
                wrong.insert(name.clone(), format!("{first:?} {:?}", figures.get(name)));
            }
        }
        wrong.retain(|name, _| !same.contains(name));
        if wrong.is_empty() && same.len() * 10 > before.len() * 7 {
            break;
        }
    }
    assert!(wrong.is_empty(), "first, later: {wrong:#?}");
    assert!(same.len() > 50, "only {} compared", same.len());
}

/// Files that are watched: an object for each.
mod epoll {
    use rustix::event::epoll;
    use rustix::fd::OwnedFd;

    pub(super) fn watch(count: u64) -> (OwnedFd, Vec<OwnedFd>) {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        // One file under many numbers, so that few other objects are made.
        let one = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        // As far as it goes: other tests watch too.
        let maximum = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let raised = rustix::process::Rlimit {
            current: maximum,
            maximum,
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
        let all: Vec<OwnedFd> = (0..count).map(|_| one.try_clone().unwrap()).collect();
        for fd in &all {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, fd, data, epoll::EventFlags::IN).unwrap();
        }
        (set, all)
    }
}

/// Parts add up to the whole, where nothing moved.
#[test]
fn parts_are_the_whole() {
    let Some(mut programs) = programs() else {
        return;
    };
    let mut warnings = Warnings::default();
    let caches = programs
        .caches(&Demand::everything(), &mut warnings)
        .unwrap();
    let mut checked = 0;
    for cache in &caches {
        let exact = |q| cache.get(q).filter(|f| !f.approx).map(|f| f.value);
        let objects = |of: Option<Objects>| of.map_or(0, Objects::get);
        let (Some(parked), Some(_)) = (exact(Quantity::Parked), exact(Quantity::Objects)) else {
            continue;
        };
        let near: u64 = cache
            .cpus
            .iter()
            .map(|c| {
                [
                    c.objects_cpu_slab,
                    c.objects_cpu_partial,
                    c.sheaf_main,
                    c.sheaf_spare,
                    c.sheaf_rcu_free,
                ]
                .map(objects)
                .iter()
                .sum::<u64>()
            })
            .sum();
        let barns: u64 = cache.nodes.iter().map(|n| n.barn_full.unwrap_or(0)).sum();
        let capacity = exact(Quantity::SheafCapacity).unwrap_or(0);
        assert!(near <= parked, "{}: {near} of {parked}", cache.name);
        assert!(
            parked <= near + barns * capacity,
            "{}: {parked} {near}",
            cache.name
        );
        let slabs: u64 = cache.nodes.iter().map(|n| n.slabs.unwrap().0).sum();
        assert_eq!(Some(slabs), exact(Quantity::Slabs), "{}", cache.name);
        let occupancy = cache.occupancy.as_ref().unwrap();
        if !occupancy.approx {
            assert_eq!(
                occupancy.value.0.iter().sum::<u64>(),
                slabs,
                "{}",
                cache.name
            );
        }
        checked += 1;
    }
    assert!(checked > 50, "{checked} of {}", caches.len());
}

const CHILD: &str = "SLABCTL_TEST_BPF_CHILD";

/// What a child of these tests holds in the kernel: numbers of its programs
/// and maps.
fn held(child: &Child) -> BTreeSet<String> {
    let dir = format!("/proc/{}/fdinfo", child.id());
    let mut held = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for line in text.lines() {
            let line: String = line.split_whitespace().collect();
            if line.starts_with("prog_id:") || line.starts_with("map_id:") {
                held.insert(line);
            }
        }
    }
    held
}

/// What of all programs and maps is in the kernel now.
fn loaded() -> BTreeSet<String> {
    let programs = aya::programs::loaded_programs().flatten();
    let maps = aya::maps::loaded_maps().flatten();
    let programs = programs.map(|p| format!("prog_id:{}", p.id()));
    programs
        .chain(maps.map(|m| format!("map_id:{}", m.id())))
        .collect()
}

/// The kernel takes everything back when the process is killed.
#[test]
fn nothing_is_left_of_a_process_that_is_killed() {
    if std::env::var_os(CHILD).is_some() {
        let mut programs = Snapshots::open().unwrap();
        programs
            .caches(&Demand::everything(), &mut Warnings::default())
            .unwrap();
        println!("loaded");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if programs().is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "nothing_is_left_of_a_process_that_is_killed",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.ends_with("loaded"));
    assert!(ready, "the child ended early");
    let held = held(&child);
    assert!(held.len() >= 4, "{held:?}");
    assert!(held.is_subset(&loaded()), "{held:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // Maps and programs go after a grace period.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !held.is_disjoint(&loaded()) {
        assert!(Instant::now() < deadline, "left: {held:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A refusal of functions' entries is an answer, not a fault.
#[test]
fn whether_programs_may_run_at_functions_is_told() {
    if programs().is_none() {
        return;
    }
    if let Err(refusal) = bpf::fentry() {
        let said = refusal.to_string();
        assert!(!said.contains('\n') && said.contains("fentry"), "{said}");
    }
}
