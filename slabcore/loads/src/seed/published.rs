//! What the threads told: the tables of the mails, on the mails' machines.
//!
//! Source of truth: the threads on linux-kernel and linux-mm, by year and subject
//! as [`super::SEEDS`] names them. Figures are as they stand there.

use super::sheet::{Kind, Sheet, Value};

/// A table of a mail.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    title: &'static str,
    columns: &'static [&'static str],
    rows: &'static [&'static [&'static str]],
}

impl Published {
    /// As a sheet.
    pub fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(Kind::Published, self.title, self.columns.iter().copied());
        let rows = self.rows.iter().map(|row| row.iter());
        sheet.rows = rows
            .map(|row| row.map(|cell| Value::of(cell)).collect())
            .collect();
        sheet
    }
}

/// Seconds and shares by `slub_min_objects`.
pub(super) const OF_2008: &[Published] = &[Published {
    title: "by slub_min_objects; seconds, and percent of processor time",
    columns: &["of", "8", "16", "32", "64"],
    rows: &[
        &["hackbench 100 process 2000, s", "250", "23", "18.6", "17.5"],
        &["hackbench 200 process 2000, s", "532", "44", "35.6", "33.5"],
        &[
            "slow alloc + slow free + add_partial, %",
            "88.00",
            "44.00",
            "13.00",
            "12",
        ],
    ],
}];

/// Gains of lists for each processor, by machine.
pub(super) const OF_2011: &[Published] = &[Published {
    title: "gain of per-CPU partial lists over 3.1-rc2, percent (over 3.0: 5 to 9 on four EX sockets, a loss of 2 to 4 on two EP sockets)",
    columns: &[
        "hackbench",
        "WSM-EP",
        "NHM-EP",
        "NHM-EX",
        "core2-EP",
        "Tigerton-EX",
    ],
    rows: &[
        &["processes", "60", "25", "200", "250", "1900"],
        &["threads", "none clear", "none clear", "10", "20", "100"],
    ],
}];

/// Rates with the locks in kmalloc-96 and in a cache of their own.
pub(super) const OF_2013: &[Published] = &[Published {
    title: "locks in kmalloc-96, and in a cache of their own; change in percent",
    columns: &["benchmark", "before", "after", "change"],
    rows: &[
        &[
            "will-it-scale.page_fault3.90.threads",
            "300,409",
            "1,622,770.80",
            "440.2",
        ],
        &[
            "will-it-scale.page_fault3.120.threads",
            "291,257.80",
            "1,657,582.20",
            "469.1",
        ],
        &[
            "vm-scalability.throughput case-shm-pread-seq-mt",
            "4,034,831.40",
            "12,095,649.80",
            "199.8",
        ],
    ],
}];

/// Cycles of slub_test without and with the fix.
pub(super) const OF_2022: &[Published] = &[
    Published {
        title: "slub_test 1: 10000 allocations, then frees; cycles (arm64: ticks of the timer)",
        columns: &[
            "bytes",
            "alloc before",
            "alloc after",
            "free before",
            "free after",
        ],
        rows: &[
            &["8", "7", "5", "8", "7"],
            &["16", "4", "3", "8", "6"],
            &["32", "4", "3", "8", "6"],
            &["64", "3", "3", "8", "6"],
            &["128", "3", "3", "8", "6"],
            &["256", "12", "11", "8", "7"],
            &["512", "27", "23", "10", "11"],
            &["1024", "18", "20", "9", "10"],
            &["2048", "54", "54", "12", "12"],
            &["4096", "105", "105", "20", "25"],
            &["8192", "210", "212", "35", "39"],
            &["16384", "133", "119", "45", "46"],
        ],
    },
    Published {
        title: "slub_test 2 and N*(alloc free): an allocation and a free; cycles",
        columns: &["bytes", "before", "after"],
        rows: &[
            &["pair, every size up to 8192", "3", "3"],
            &["pair, 16384", "33", "33"],
            &["N*(alloc free), every size", "3", "3"],
        ],
    },
    Published {
        title: "N*alloc N*free, concurrent; cycles",
        columns: &[
            "bytes",
            "alloc before",
            "free before",
            "alloc after",
            "free after",
        ],
        rows: &[
            &["8", "17", "18", "11", "11"],
            &["16", "15", "49", "9", "11"],
            &["32", "15", "40", "9", "11"],
            &["64", "15", "44", "9", "10"],
            &["128", "15", "42", "10", "10"],
            &["256", "128", "28", "71", "22"],
            &["512", "206", "34", "178", "26"],
            &["1024", "762", "37", "369", "27"],
            &["2048", "327", "58", "339", "33"],
            &["4096", "2255", "128", "1813", "64"],
        ],
    },
];

/// Seconds without and with the patches, three runs of each.
pub(super) const OF_2023: &[Published] = &[Published {
    title: "three runs each; seconds",
    columns: &[
        "benchmark",
        "baseline 1",
        "baseline 2",
        "baseline 3",
        "patched 1",
        "patched 2",
        "patched 3",
    ],
    rows: &[
        &[
            "perf bench sched messaging -g 5 -t -l 100000",
            "7.042",
            "7.022",
            "7.054",
            "6.966",
            "7.045",
            "6.985",
        ],
        &[
            "stress-ng --rawpkt 128 --rawpkt-ops 100000000",
            "2.42",
            "2.45",
            "2.44",
            "2.15",
            "2.16",
            "2.17",
        ],
    ],
}];
