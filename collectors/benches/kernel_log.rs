//! How fast a kernel log is searched for reports on one core: a log without
//! any, one with a report in every 5 MB, and one of reports only.

use std::hint::black_box;

use collectors::analysis::explain::Explainer;
use collectors::parse::kernel_log::Scanner;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const REPORT: &[u8] = include_bytes!("../tests/data/log/slub-5.10-overflow-quoted-deep.txt");

/// Lines as a kernel prints them, up to `len` bytes.
fn noise(len: usize) -> Vec<u8> {
    const LINES: [&str; 5] = [
        "usb 2-1.1.4: new high-speed USB device number 8 using xhci_hcd",
        "audit: type=1400 audit(1700000000.1:2): apparmor=\"STATUS\" operation=\"profile_load\" name=\"x\"",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
        "CPU: 5 PID: 3816 Comm: stress-ng Tainted: G    W             5.10.50+ #7",
        "RAX: ffffffffffffffda RBX: 00007fff7f4ee66c RCX: 0000150340b0ffb7",
    ];
    let mut out = Vec::with_capacity(len + 200);
    let mut n = 0;
    while out.len() < len {
        let line = format!(
            "[{:>5}.{:06}] {}\n",
            n / 1000,
            n % 1_000_000,
            LINES[n % LINES.len()]
        );
        out.extend_from_slice(line.as_bytes());
        n += 1;
    }
    out
}

fn kernel_log(c: &mut Criterion) {
    let quiet = noise(100_000_000);
    let mut some = Vec::new();
    let parts = quiet.len().div_ceil(5_000_000);
    for part in quiet.chunks(5_000_000) {
        some.extend_from_slice(part);
        some.push(b'\n');
        some.extend_from_slice(REPORT);
    }
    let copies = 20_000_000 / REPORT.len();
    let only = REPORT.repeat(copies);
    let mut group = c.benchmark_group("kernel_log");
    group.sample_size(10);
    for (name, text, reports) in [
        ("quiet", &quiet, 0),
        ("some", &some, parts),
        ("only", &only, copies),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut explainer = Explainer::default();
                let mut count = 0usize;
                for report in Scanner::new(text.as_slice()).flatten() {
                    explainer.add(&report);
                    count += 1;
                }
                assert_eq!(count, reports);
                black_box(explainer.finish())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, kernel_log);
criterion_main!(benches);
