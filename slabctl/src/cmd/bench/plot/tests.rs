//! Drawings of made results.

use loads::bench::Workload;

use super::*;

fn result(name: &str, values: &[(usize, &str, f64)]) -> WorkloadResult {
    let workload = Workload::named(name).unwrap();
    let mut cases: Vec<CaseResult> = Vec::new();
    for (case, contender, value) in values {
        if cases.last().is_none_or(|last| last.case != *case) {
            cases.push(CaseResult {
                case: *case,
                figures: vec![("alloc".to_owned(), "ns".to_owned())],
                ..CaseResult::default()
            });
        }
        let rounds = [value * 0.9, *value, value * 1.2].to_vec();
        let key = ((*contender).to_owned(), "alloc".to_owned());
        cases.last_mut().unwrap().values.insert(key, rounds);
    }
    WorkloadResult { workload, cases }
}

fn plan() -> Plan {
    Plan {
        workloads: Vec::new(),
        contenders: vec!["hybrid".to_owned(), "classic".to_owned()],
        threads: 2,
        rounds: 3,
    }
}

fn results() -> Vec<WorkloadResult> {
    vec![
        result(
            "kmalloc",
            &[
                (8, "hybrid", 2.0),
                (8, "classic", 5.0),
                (64, "hybrid", 3.0),
                (512, "hybrid", 90.0),
                (512, "classic", 180.0),
            ],
        ),
        result("xmalloc", &[(0, "hybrid", 20.0)]),
    ]
}

fn drawn(name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let plot = Plot::create(&path).unwrap();
    plot.write(&plan(), &results()).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn panels_hold_what_was_measured_and_nothing_else() {
    let panels = panels(&plan(), &results());
    assert_eq!(panels.len(), 2);
    assert_eq!(panels[0].cases, [8, 64, 512]);
    assert_eq!(panels[0].series[1].dots[1], None, "classic has no 64");
    let dot = panels[0].series[0].dots[2].unwrap();
    assert!((dot.middle - 90.0).abs() < 1e-9 && dot.low < 90.0 && dot.high > 90.0);
    assert_eq!(panels[1].series[1].dots, [None]);
}

#[test]
fn a_vector_drawing_names_contenders_cases_and_the_machine() {
    let text = String::from_utf8(drawn("a.svg")).unwrap();
    for part in [
        "<svg",
        "hybrid",
        "classic",
        "kmalloc: alloc",
        "512",
        "log scale",
        "xmalloc: alloc (ns)",
        "processors",
        "less is better",
    ] {
        assert!(text.contains(part), "{part} is not in the drawing");
    }
    assert!(!text.contains("NaN") && !text.contains("inf"));
}

#[test]
fn a_picture_has_the_colours_of_both_contenders_and_letters() {
    let bytes = drawn("a.png");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), size(2));
    let count = |colour: RGBColor| {
        let wanted = [colour.0, colour.1, colour.2];
        pixels.chunks(3).filter(|p| *p == wanted).count()
    };
    assert!(count(colour(0)) > 1000, "the bar of hybrid");
    assert!(count(colour(1)) > 144, "lines of classic");
    assert!(count(BLACK) > 500, "letters and axes");
}

#[test]
fn a_drawing_is_svg_or_png_and_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| Plot::create(&folder.path().join(name));
    let why = made("a.jpg").unwrap_err().to_string();
    assert!(why.contains(".svg or .png"), "{why}");
    assert!(made("a").is_err());
    made("a.svg").unwrap();
    assert!(made("a.svg").is_err(), "nothing is overwritten");
}
