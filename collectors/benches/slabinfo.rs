//! How fast a slabinfo text of a million rows is read on one core.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{BufReader, Cursor};

use collectors::parse::slabinfo::{MAX_ROWS, Reader, parse_from};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ROWS: u32 = 1_000_000;

/// A text with `rows` rows in the kernel's format, each about 120 bytes.
fn text(rows: u32) -> Vec<u8> {
    let mut out = String::from(
        "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> \
         <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata \
         <active_slabs> <num_slabs> <sharedavail>\n",
    );
    for i in 0..rows {
        let (active, slabs) = (i % 400_000, i % 20_000);
        let name = format!("radix_tree_node({i})");
        let line = writeln!(
            out,
            "{name:<17} {active:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {slabs:>6} {slabs:>6} {:>6}",
            active + 20,
            584,
            28,
            4,
            0,
            0,
            0,
            0,
        );
        assert!(line.is_ok());
    }
    out.into_bytes()
}

fn slabinfo(c: &mut Criterion) {
    let text = text(ROWS);
    let mut group = c.benchmark_group("slabinfo");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10);
    group.bench_function("rows", |b| {
        b.iter(|| {
            let mut reader = Reader::new(BufReader::new(Cursor::new(&text)));
            let mut slabs = 0u64;
            while let Ok(Some(entry)) = reader.next_row() {
                slabs += entry.row.columns.num_slabs.unwrap_or_default();
            }
            assert_eq!(reader.rows(), u64::from(ROWS));
            black_box(slabs)
        });
    });
    group.bench_function("caches", |b| {
        b.iter(|| {
            let info = parse_from(text.as_slice(), MAX_ROWS);
            assert!(info.is_ok_and(|i| black_box(i).parsed.caches.len() == ROWS as usize));
        });
    });
    group.finish();
}

criterion_group!(benches, slabinfo);
criterion_main!(benches);
