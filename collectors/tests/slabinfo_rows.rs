//! Rows of slabinfo in every layout, whole, wrapped, quoted and broken.

use std::fmt::Write as _;

use collectors::model::{Cache, Layer, Quantity, Warning, WarningCode};
use collectors::parse::slabinfo::{
    Format, Reader, RowError, Slabinfo, parse, parse_from, parse_memcg, parse_row, recognise,
};

const HEAD: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> \
                    <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : \
                    slabdata <active_slabs> <num_slabs> <sharedavail>\n";
const DENTRY: &str = "dentry  12  42  192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n";
const FILP: &str = "filp  30  32  256 16 1 : tunables 0 0 0 : slabdata 2 2 0\n";

fn names(info: &Slabinfo) -> Vec<&str> {
    info.parsed.caches.iter().map(|c| &*c.name).collect()
}

fn warnings(info: &Slabinfo) -> Vec<String> {
    info.parsed
        .warnings
        .iter()
        .map(Warning::to_string)
        .collect()
}

fn get(cache: &Cache, quantity: Quantity) -> Option<u64> {
    cache.get(quantity).map(|f| f.value)
}

#[test]
fn a_name_is_everything_before_the_last_five_numbers() {
    for name in [
        "file lock cache",
        "iwl_cmd_pool:0000:04:00.0",
        "biovec-(256)",
        "L2TP/IPv6",
        "page->ptl",
        "odd 1 2 3 4 5 6",
        "a : b",
        "名前",
    ] {
        let line = format!("{name:<17} 1 2 3 4 5 : tunables 6 7 8 : slabdata 9 10 11");
        let row = parse_row(&line, Format::V2).unwrap();
        assert_eq!(row.name, name);
        assert_eq!(row.columns.active_objs, 1);
        assert_eq!(row.columns.pagesperslab, Some(5));
        assert_eq!(row.columns.sharedavail, Some(11));
    }
    let row = parse_row("file lock cache  1 2 92 1 1 1 :  252  126", Format::V1_1).unwrap();
    assert_eq!(
        (row.name, row.columns.objsize),
        ("file lock cache", Some(92))
    );
}

#[test]
fn the_reason_names_the_column() {
    let error = |head: &str| {
        let line = format!("{head} : tunables 0 0 0 : slabdata 2 2 0");
        parse_row(&line, Format::V2).unwrap_err()
    };
    assert_eq!(error("x 1 2 -3 4 5"), RowError::Negative("objsize"));
    assert_eq!(error("x 1 2x 3 4 5"), RowError::NotANumber("num_objs"));
    assert_eq!(
        error("x 1 2 3 4 18446744073709551616"),
        RowError::TooLarge("pagesperslab")
    );
    assert_eq!(error("1 2 3 4 5"), RowError::NoName);
    let cut = parse_row("x 1 2 3 4 5 : tunables 0 0 0 : slabd", Format::V2);
    assert_eq!(cut, Err(RowError::Cut("slabdata")));
    let many = parse_row(
        "x 1 2 3 4 5 : tunables 0 0 0 : slabdata 1 2 3 4 5 6",
        Format::V2,
    );
    assert_eq!(many, Err(RowError::Extra));
}

#[test]
fn statistics_of_each_layout() {
    let parts = |tail: &str| {
        let line = format!("x 1 2 3 4 5 : tunables 6 7 8 : slabdata 9 10 11 {tail}");
        parse_row(&line, Format::V2).unwrap().columns
    };
    let seven = parts(": globalstat 44 40 8 0 0 0 37 : cpustat 37 9 10 0");
    assert_eq!(seven.freelimit, Some(37));
    let statistics = seven.statistics.unwrap();
    assert_eq!(
        (statistics.nodeallocs, statistics.freemiss),
        (None, Some(0))
    );
    let nine = parts(": globalstat 1 2 3 4 \t\t\t5 6 7 8 9 : cpustat 1 2 3 4");
    assert_eq!(
        (nine.freelimit, nine.statistics.unwrap().alienoverflow),
        (None, Some(9))
    );
    // Linux 2.5.7x put the processor's number first.
    let early = parts(": globalstat 1 2 3 4 5 6 7 : cpustat 1 974008 78670 1990714 61964");
    assert_eq!(early.statistics.unwrap().allochit, Some(974_008));
}

#[test]
fn statistics_of_2_4_with_several_processors() {
    let text = "slabinfo - version: 1.1 (statistics) (SMP)\n\
        kmem_cache            72     72    164    3    3    1 :     72      72     3    0    0 :  252  126 :     20      3      0      0\n\
        tcp_tw_bucket         74     74    104    2    2    1 :    370  165470   753  751    0 :  252  126 : 132075   3851 135164      5\n";
    let info = parse(text.as_bytes());
    assert!(info.statistics && info.smp && warnings(&info).is_empty());
    let bucket = &info.parsed.caches[1];
    assert_eq!(bucket.tunables.as_deref().unwrap().batchcount, 126);
    let statistics = bucket.slab_statistics.as_deref().unwrap();
    assert_eq!(
        (statistics.maxobjs, statistics.reaped),
        (Some(370), Some(751))
    );
    assert_eq!(
        (statistics.allochit, statistics.freemiss),
        (Some(132_075), Some(5))
    );
}

#[test]
fn linux_2_2_has_no_sizes() {
    let text = "# cat /proc/slabinfo\nslabinfo - version: 1.0\nkmem_cache            29     42\n\
                dentry_cache      1189547 1263374\nfile lock cache 1 2\n\n# free\nMem: 261668 251968\n";
    let info = parse(text.as_bytes());
    assert_eq!(
        names(&info),
        ["kmem_cache", "dentry_cache", "file lock cache"]
    );
    let dentry = &info.parsed.caches[1];
    assert_eq!(get(dentry, Quantity::TotalObjects), Some(1_263_374));
    assert_eq!(get(dentry, Quantity::SlabSize), None);
    assert_eq!(get(dentry, Quantity::Slabs), None);
    // With statistics it gives the pages of all slabs.
    let row = parse_row("x 10 20 2 4 16 20 99 5 1 0", Format::V1_0).unwrap();
    assert_eq!(
        (row.columns.num_slabs, row.columns.pagesperslab),
        (Some(4), Some(4))
    );
}

#[test]
fn rows_that_a_mail_program_broke_are_joined() {
    let groups = "slabinfo - version: 2.0 (statistics)\n\
        # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n\
        : tunables <batchcount> <limit <sharedfactor>\n\
        : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
        broken               128   2486    180   22    1\n\
        : tunables   32   16    8\n\
        : slabdata    113    113    128\n\
        : globalstat  664846 590238 26829    0    0    1   70\n\
        : cpustat 1 974008  78670 1990714  61964\n";
    let columns = "> slabinfo - version: 2.0 (statistics)\n\
        > # name            <active_objs> <num_objs> <objsize> <objperslab>\n\
        > <pagesperslab> : tunables <batchcount> <limit> <sharedfactor> : slabdata\n\
        > <active_slabs> <num_slabs> <sharedavail> : globalstat <listallocs> <maxobjs>\n\
        > unix_sock              0      0   4096    1    1 : tunables   24   12    0 :\n\
        > slabdata      0      0      0 : globalstat     187     22   175  175    0\n\
        > 0   25 : cpustat    360    184    544      0\n\
        > tcp_tw_bucket          0      0    100   39    1 : tunables   32   16    0 :\n\
        > slabdata      0      0      0 : globalstat     752     19    39   39    0\n\
        > 0   71 : cpustat      7     47     54      0\n";
    let info = parse(groups.as_bytes());
    assert_eq!(warnings(&info), [""; 0]);
    assert_eq!(names(&info), ["broken"]);
    let statistics = info.parsed.caches[0].slab_statistics.as_deref().unwrap();
    assert_eq!(statistics.freehit, Some(1_990_714));
    let info = parse(columns.as_bytes());
    assert_eq!(warnings(&info), [""; 0]);
    assert_eq!(names(&info), ["unix_sock", "tcp_tw_bucket"]);
    let statistics = info.parsed.caches[1].slab_statistics.as_deref().unwrap();
    assert_eq!(
        (statistics.listallocs, statistics.freehit),
        (Some(752), Some(54))
    );
}

#[test]
fn a_row_may_be_broken_after_any_column() {
    let row = DENTRY.trim_end();
    for (at, _) in row.match_indices(' ') {
        let text = format!("{HEAD}{}\n{}\n{FILP}", &row[..at], &row[at..]);
        let info = parse(text.as_bytes());
        assert_eq!(names(&info), ["dentry", "filp"], "{text}");
        assert!(warnings(&info).is_empty(), "{text}: {:?}", warnings(&info));
    }
}

#[test]
fn a_row_cut_after_any_column_costs_only_itself() {
    let row = DENTRY.trim_end();
    for end in "dentry  12  42".len()..row.len() - " 0".len() {
        let text = format!("{HEAD}{}\n{FILP}", &row[..end]);
        let info = parse(text.as_bytes());
        assert_eq!(names(&info), ["filp"], "{text}");
        assert!(info.parsed.warnings.has(WarningCode::BrokenRow), "{text}");
        assert_eq!(
            (info.parsed.broken_rows, info.parsed.warnings.iter().count()),
            (1, 1)
        );
        // Without an end of line it is the text that was cut.
        let info = parse(format!("{HEAD}{FILP}{}", &row[..end]).as_bytes());
        assert_eq!(names(&info), ["filp"]);
        assert_eq!(warnings(&info), ["line 4: truncated row, ignored"]);
    }
    for end in 1..="dentry  12  42".len() {
        let info = parse(format!("{HEAD}{FILP}{}", &row[..end]).as_bytes());
        assert_eq!(warnings(&info), ["line 4: truncated row, ignored"]);
    }
}

#[test]
fn bad_numbers_are_named_with_their_line() {
    let bad = "skbuff 1 -2 3 4 1 : tunables 0 0 0 : slabdata 2 2 0\n";
    let huge = "bio-0 99999999999999999999 1 3 4 1 : tunables 0 0 0 : slabdata 2 2 0\n";
    let info = parse(format!("{HEAD}{DENTRY}{bad}{huge}{FILP}").as_bytes());
    assert_eq!(names(&info), ["dentry", "filp"]);
    assert_eq!(
        warnings(&info),
        [
            "line 4: row 2 (skbuff) left out: num_objs is negative",
            "line 5: row 3 (bio-0) left out: active_objs does not fit into 64 bits",
        ]
    );
    assert_eq!(info.parsed.broken_rows, 2);
}

#[test]
fn text_around_the_table_is_passed_over() {
    let text = format!(
        "Hi,\n\n see 1 2 3 : below\n$ uname -a\nLinux pi 6.6 #1 SMP\n$ cat /proc/slabinfo\n\
         {HEAD}{DENTRY}...\n{FILP}MemTotal:  1234 kB\ncpu  1 2 3 4 5 6 7 8 9 10\n\nNode 0, zone DMA 1 2 3\n\
         size of x 12 13\n$ "
    );
    let info = parse(text.as_bytes());
    assert_eq!(names(&info), ["dentry", "filp"]);
    assert!(warnings(&info).is_empty(), "{:?}", warnings(&info));
    assert!(recognise(text.as_bytes()));
    assert!(!recognise(b"Hi,\n see 1 2 3 : below\nMemTotal: 12 kB\n"));
    assert!(!recognise(b""));
}

#[test]
fn pasted_forms_give_the_same_caches() {
    let plain = format!("{HEAD}{DENTRY}{FILP}");
    let want = parse(plain.as_bytes());
    let each = |f: &dyn Fn(&str) -> String| plain.lines().map(f).collect::<String>();
    for text in [
        each(&|l| format!("{l}\r\n")),
        each(&|l| format!("> {l}\n")),
        each(&|l| format!(">> {l}\n")),
        each(&|l| format!("| {l}\n")),
        each(&|l| format!("    {l}\n")),
        each(&|l| format!("proc/slabinfo:{l}\n")),
        each(&|l| format!("{}\n", l.replace("  ", "\u{a0} "))),
        // Lines with # and empty lines taken out, as supportconfig does.
        each(&|l| {
            if l.starts_with('#') {
                String::new()
            } else {
                format!("{l}\n")
            }
        }),
    ] {
        let info = parse(text.as_bytes());
        assert_eq!(info.parsed.caches, want.parsed.caches, "{text}");
        assert!(warnings(&info).is_empty(), "{text}");
    }
    let grouped = "dentry  1,234,567  42  192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n";
    let info = parse(grouped.as_bytes());
    assert_eq!(
        get(&info.parsed.caches[0], Quantity::Objects),
        Some(1_234_567)
    );
}

#[test]
fn a_note_beside_a_row_does_not_cost_the_row() {
    let noted = DENTRY.replace('\n', "   <-- leak!\n");
    let info = parse(format!("{HEAD}{noted}{FILP}").as_bytes());
    assert_eq!(names(&info), ["dentry", "filp"]);
    assert!(warnings(&info).is_empty());
}

#[test]
fn a_text_that_ends_in_the_statistics_says_so() {
    let row = "x 1 2 3 4 5 : tunables 6 7 8 : slabdata 9 10 11 : globalstat 1 2 3 4 5 6 7 8 9 \
               : cpustat 1 2 3 4";
    let head = "slabinfo - version: 2.1 (statistics)\n";
    let end = row.find(" : globalstat").unwrap();
    let info = parse(format!("{head}{}", &row[..end]).as_bytes());
    assert_eq!(names(&info), ["x"]);
    assert!(info.parsed.warnings.has(WarningCode::Truncated));
    assert!(warnings(&parse(format!("{head}{row}").as_bytes())).is_empty());
}

#[test]
fn memory_of_2_4_after_the_table_is_no_cache() {
    let text = "slabinfo - version: 1.1\nsize-32 8679 11413 32 88 101 1\n\
                Mem:  261668 251968 9700 0 7368 8192\nSwap: 1 2 3 4 5 6\n";
    let info = parse(text.as_bytes());
    assert_eq!(names(&info), ["size-32"]);
    assert!(warnings(&info).is_empty(), "{:?}", warnings(&info));
}

#[test]
fn other_files_of_a_control_group_are_not_rows() {
    let dir = "/sys/fs/cgroup/memory/a.slice";
    let text = format!(
        "{dir}/memory.kmem.slabinfo:{DENTRY}{dir}/memory.stat:cache 12 13\n\
         {dir}/memory.numa_stat:total=1 N0=1\n{dir}/b/memory.kmem.slabinfo:{DENTRY}\
         memory.limit_in_bytes:12"
    );
    let info = parse(text.as_bytes());
    assert!(warnings(&info).is_empty(), "{:?}", warnings(&info));
    let groups: Vec<_> = info
        .parsed
        .caches
        .iter()
        .map(|c| c.cgroup.as_deref())
        .collect();
    assert_eq!(groups, [Some("/a.slice"), Some("/a.slice/b")]);
    let info = parse_memcg(DENTRY.as_bytes(), "/a.slice");
    assert_eq!(
        info.parsed.caches[0].origin(Quantity::Slabs),
        Some(Layer::Memcg)
    );
}

#[test]
fn caches_of_one_name_stay_apart() {
    let info = parse(format!("{HEAD}{DENTRY}{DENTRY}").as_bytes());
    assert_eq!(names(&info), ["dentry", "dentry"]);
    assert_ne!(info.parsed.caches[0].id, info.parsed.caches[1].id);
}

#[test]
fn one_tuned_row_makes_it_slab_for_all() {
    let tuned = "kmem_cache 1 2 96 40 1 : tunables 120 60 0 : slabdata 1 2 0\n";
    let info = parse(format!("{HEAD}{DENTRY}{tuned}").as_bytes());
    for cache in &info.parsed.caches {
        assert!(
            get(cache, Quantity::ActiveSlabs).is_some(),
            "{}",
            cache.name
        );
        assert!(cache.tunables.is_some(), "{}", cache.name);
    }
}

#[test]
fn limits_are_said() {
    let long = "x".repeat(200_000);
    let text = format!("{HEAD}{DENTRY}{long}\n{FILP}");
    let info = parse(text.as_bytes());
    assert_eq!(names(&info), ["dentry", "filp"]);
    assert_eq!(
        warnings(&info),
        ["line 4: line longer than 65536 bytes, skipped"]
    );
    let info = parse_from(format!("{HEAD}{DENTRY}{FILP}").as_bytes(), 1).unwrap();
    assert_eq!(names(&info), ["dentry"]);
    assert!(info.parsed.warnings.has(WarningCode::LimitReached));
}

#[test]
fn the_reader_gives_rows_with_their_lines() {
    let mut text = String::from("junk\n");
    write!(text, "{HEAD}{DENTRY}\n/proc/slabinfo:{FILP}").unwrap();
    let mut reader = Reader::new(text.as_bytes());
    let entry = reader.next_row().unwrap().unwrap();
    assert_eq!(
        (entry.row.name, entry.line, entry.file),
        ("dentry", 4, None)
    );
    let entry = reader.next_row().unwrap().unwrap();
    assert_eq!((entry.row.name, entry.line), ("filp", 6));
    assert_eq!(entry.file, Some("/proc/slabinfo"));
    assert!(reader.next_row().unwrap().is_none());
    assert_eq!((reader.rows(), reader.broken_rows()), (2, 0));
}

#[test]
fn it_reads_as_a_procfs_type() {
    let info = <Slabinfo as procfs::FromBufRead>::from_buf_read(DENTRY.as_bytes()).unwrap();
    assert_eq!(names(&info), ["dentry"]);
}
