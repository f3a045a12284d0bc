//! Whatever the bytes, nothing panics and what can be read is kept.

use std::fmt::Write as _;

use collectors::parse::slabinfo::{Format, parse, parse_row, recognise};
use proptest::prelude::*;

const TEXTS: [&[u8]; 4] = [
    include_bytes!("data/slabinfo/2.4-smp-1.1.txt"),
    include_bytes!("data/slabinfo/4.4-arm-slab.txt"),
    include_bytes!("data/slabinfo/6.1-slab-statistics-numa.txt"),
    include_bytes!("data/slabinfo/4.1-arm-router.txt"),
];

/// Names a row can have without being taken for something else.
fn name() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_:()\\[\\]/>. -]{0,40}[a-z)\\]0-9]"
        .prop_filter("reads as another part", |n| {
            !n.contains("slabinfo") && !n.contains("tunables")
        })
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..100_000u64, any::<u64>()]
}

/// Damage to one line: bytes replaced, taken out from a place on, or doubled.
#[derive(Debug, Clone)]
enum Damage {
    Replace(usize, Vec<u8>),
    Cut(usize),
    Behead(usize),
    Double,
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes =
        proptest::collection::vec(any::<u8>().prop_filter("line end", |b| *b != b'\n'), 1..6);
    prop_oneof![
        (0..200usize, bytes).prop_map(|(at, bytes)| Damage::Replace(at, bytes)),
        (0..200usize).prop_map(Damage::Cut),
        (0..200usize).prop_map(Damage::Behead),
        Just(Damage::Double),
    ]
}

fn harm(line: &[u8], damage: &Damage) -> Vec<u8> {
    let mut out = line.to_vec();
    match damage {
        Damage::Replace(at, bytes) => {
            let at = at % line.len();
            let end = (at + bytes.len()).min(line.len());
            out.splice(at..end, bytes.iter().copied());
        }
        Damage::Cut(at) => out.truncate(at % line.len()),
        Damage::Behead(at) => drop(out.drain(..at % line.len())),
        Damage::Double => {
            out.push(b'\n');
            out.extend(line);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..2000)) {
        parse(&text);
        recognise(&text);
    }

    #[test]
    fn any_words(words in proptest::collection::vec(
        "\n|slabinfo - version: 1\\.[01]\n|: tunables|: slabdata|: globalstat|cpustat|:|[0-9]{1,22}|-?[0-9]|> |dentry|[ -~]{0,6}",
        0..60,
    )) {
        let text = words.join(" ");
        let info = parse(text.as_bytes());
        prop_assert!(info.parsed.caches.len() <= text.lines().count());
        for format in [Format::V1_0, Format::V1_1, Format::V2] {
            for line in text.lines() {
                if let Ok(row) = parse_row(line, format) {
                    prop_assert!(!row.name.is_empty() && line.contains(row.name));
                }
            }
        }
    }

    #[test]
    fn one_bad_line_costs_no_other(which in 0..TEXTS.len(), pick in any::<prop::sample::Index>(), damage in damage()) {
        let lines: Vec<&[u8]> = TEXTS[which].split(|b| *b == b'\n').collect();
        let clean = parse(TEXTS[which]).parsed.caches;
        // Only lines of rows; a damaged version line of 2.4 takes the layout with it.
        let first = lines.iter().position(|l| l.starts_with(clean[0].name.as_bytes())).unwrap();
        let row = pick.index(clean.len());
        let mut text = lines[..first + row].join(&b'\n');
        text.push(b'\n');
        text.extend(harm(lines[first + row], &damage));
        text.push(b'\n');
        text.extend(lines[first + row + 1..].join(&b'\n'));
        let got = parse(&text).parsed;
        let after = clean.len() - row - 1;
        prop_assert!(got.caches.len() >= row + after);
        let figures = |list: &[collectors::model::Cache]| -> Vec<String> {
            list.iter()
                .map(|c| format!("{} {:?} {:?} {:?}", c.name, c.objects(), c.slabs(), c.slab_statistics))
                .collect()
        };
        prop_assert_eq!(figures(&got.caches[..row]), figures(&clean[..row]));
        let tail = got.caches.len() - after;
        prop_assert_eq!(figures(&got.caches[tail..]), figures(&clean[row + 1..]));
        let doubled = usize::from(matches!(damage, Damage::Double));
        prop_assert!(got.caches.len() <= clean.len() + doubled);
    }

    #[test]
    fn what_the_kernel_prints_is_read_back(rows in proptest::collection::vec((name(), proptest::array::uniform11(any_number())), 1..20), statistics: bool) {
        let mut text = String::from("slabinfo - version: 2.1\n");
        for (name, n) in &rows {
            write!(
                text,
                "{name:<17} {:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {:>6} {:>6} {:>6}",
                n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10],
            ).unwrap();
            if statistics {
                write!(
                text,
                    " : globalstat {:>7} {:>6} {:>5} {:>4} \t\t\t\t{:>4} {:>4} {:>4} {:>4} {:>4} : cpustat {:>6} {:>6} {:>6} {:>6}",
                    n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[0], n[1],
                ).unwrap();
            }
            text.push('\n');
        }
        let info = parse(text.as_bytes());
        prop_assert!(info.parsed.warnings.is_empty(), "{:?}", info.parsed.warnings);
        prop_assert_eq!(info.parsed.caches.len(), rows.len());
        for (line, (name, n)) in text.lines().skip(1).zip(&rows) {
            let row = parse_row(line, Format::V2).unwrap();
            let c = &row.columns;
            let tunables = c.tunables.unwrap();
            prop_assert_eq!(row.name, name);
            let got = [
                c.active_objs, c.num_objs, c.objsize.unwrap(), c.objperslab.unwrap(), c.pagesperslab.unwrap(),
                tunables.limit, tunables.batchcount, tunables.sharedfactor.unwrap(),
                c.active_slabs.unwrap(), c.num_slabs.unwrap(), c.sharedavail.unwrap(),
            ];
            prop_assert_eq!(&got, n);
            if statistics {
                let s = c.statistics.unwrap();
                prop_assert_eq!((s.reaped, s.error, s.alienoverflow, s.freemiss), (Some(n[3]), Some(n[4]), Some(n[8]), Some(n[1])));
            }
        }
        for (cache, (name, n)) in info.parsed.caches.iter().zip(&rows) {
            prop_assert_eq!(&*cache.name, name);
            prop_assert_eq!(cache.objects().unwrap().value.get(), n[0]);
        }
    }

    #[test]
    fn what_2_4_prints_is_read_back(rows in proptest::collection::vec((name(), proptest::array::uniform8(any_number())), 1..20)) {
        let mut text = String::from("slabinfo - version: 1.1 (SMP)\n");
        let mut names = Vec::new();
        for (name, n) in &rows {
            // A last word of digits cannot be told from a column there.
            let name = format!("{name}x");
            writeln!(
                text,
                "{name:<17} {:>6} {:>6} {:>6} {:>4} {:>4} {:>4} : {:>4} {:>4}",
                n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7],
            ).unwrap();
            names.push(name);
        }
        let info = parse(text.as_bytes());
        prop_assert!(info.parsed.warnings.is_empty(), "{:?}", info.parsed.warnings);
        let got: Vec<_> = info.parsed.caches.iter().map(|c| c.name.to_string()).collect();
        prop_assert_eq!(got, names);
        for (cache, (_, n)) in info.parsed.caches.iter().zip(&rows) {
            prop_assert_eq!(cache.slabs().unwrap().value.get(), n[4]);
            prop_assert_eq!(cache.tunables.as_deref().unwrap().batchcount, n[7]);
        }
    }
}
