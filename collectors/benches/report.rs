//! How long a snapshot of 10,000 caches takes, in memory and on disk.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use collectors::model::Quantity;
use collectors::source::kernel::KernelSource;
use collectors::source::tree::{DirTree, Tree};
use collectors::source::{Demand, Source as _};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::tree::{Fake, Shape};

const CACHES: u32 = 10_000;

/// The figures of the list that `slabctl report` prints.
fn list() -> Demand {
    Demand::names().with(&[
        Quantity::ObjectSize,
        Quantity::SlabSize,
        Quantity::ObjsPerSlab,
        Quantity::Order,
        Quantity::Slabs,
        Quantity::Objects,
        Quantity::TotalObjects,
        Quantity::Partial,
    ])
}

fn sample(tree: Box<dyn Tree>, demand: &Demand) {
    let snapshot = KernelSource::live(tree).sample(demand);
    assert!(snapshot.is_ok_and(|s| black_box(s).caches.len() == CACHES as usize));
}

fn report(c: &mut Criterion) {
    let fake = Fake::new(Shape {
        caches: CACHES,
        merged_every: 4,
        nodes: 2,
        cpus: 8,
        counters: false,
    });
    let mem = fake.mem();
    let Ok(dir) = tempfile::tempdir() else {
        return;
    };
    fake.write(dir.path());
    let disk = || DirTree::trusted(dir.path()).map(|t| Box::new(t) as Box<dyn Tree>);

    let mut group = c.benchmark_group("snapshot of 10,000 caches");
    group.throughput(Throughput::Elements(u64::from(CACHES)));
    group.sample_size(10);
    for (name, demand) in [("list", list()), ("everything", Demand::everything())] {
        group.bench_function(format!("memory, {name}"), |b| {
            b.iter(|| sample(Box::new(mem.clone()), &demand));
        });
        group.bench_function(format!("disk, {name}"), |b| {
            b.iter(|| {
                if let Ok(tree) = disk() {
                    sample(tree, &demand);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, report);
criterion_main!(benches);
