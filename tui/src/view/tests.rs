//! Frames as text with their styles, and every screen at every small size.
//!
//! A style run is written below its line as `column-column role-like words`,
//! since the text alone would not show that a colour was lost.

use std::fmt::Write as _;
use std::time::Duration;

use collectors::model::{
    Approx, CacheId, Counter, CounterId, Counters, CpuId, CpuPart, FreeBlocks, Layer, NodeId,
    NodePart, Objects, Pressure, Quantity, SiteKind, Slabs, Stall, Warning, WarningCode,
};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

use super::*;
use crate::glyphs::Glyphs;
use crate::model::{Model, Sample, Settings, SitesRead};
use crate::msg::Msg;
use crate::press::Press;
use crate::screens::SCREENS;
use crate::testing::{cache, sample};
use crate::theme::Theme;
use crate::update::update;

pub(super) fn settings(theme: Theme, glyphs: Glyphs) -> Settings {
    Settings {
        theme,
        glyphs,
        ..Settings::default()
    }
}

/// Caches with everything a screen shows: an estimate, a merged one, an empty
/// one, counters, a hostile name, a long one.
pub(super) fn caches(second: u64) -> Vec<collectors::model::Cache> {
    let mut list = vec![
        cache("dentry", 5000 + second * 40),
        cache("kmalloc-64", 300 - second),
        cache("a_cache_with_quite_a_long_name_indeed", 12),
        cache("ev\x1b[2Jil", 3),
        cache("empty", 0),
    ];
    list[0].set(
        Quantity::Objects,
        Approx::estimate(160_000),
        Layer::Slabinfo,
    );
    list[1].aliases = Some(vec!["merged_one".into(), "another".into()]);
    list[1].sysfs_id = Some(":0000064".into());
    let counter = |id, total: u64| Counter {
        id,
        total,
        cpus: vec![(CpuId(0), u32::try_from(total).unwrap())],
    };
    list[0].counters = Some(Box::new(Counters(vec![
        counter(CounterId::AllocFastpath, 1000 + second * 90),
        counter(CounterId::AllocSlowpath, 200 + second * 10),
        counter(CounterId::FreeFastpath, 900 + second * 30),
        counter(CounterId::FreeSlowpath, 100 + second * 10),
        counter(CounterId::FreeAddPartial, 50 + second),
    ])));
    // Unknown: not in this source.
    list[2].forget(Quantity::Partial);
    for (cache, id) in list.iter_mut().zip(0..) {
        cache.id = CacheId(id);
    }
    list
}

/// What belongs to CPUs and nodes, to the machine, and the call sites of `dentry`.
pub(super) fn full_sample(second: u64) -> Sample {
    let mut sample = sample(caches(second), second);
    for (cache, step) in sample.snapshot.caches.iter_mut().skip(1).zip(0u64..) {
        let cpu = |n: u32| CpuPart {
            slabs_cpu_partial: Some(Slabs(u64::from(n) * 3 + step)),
            objects_cpu_partial: Some(Objects(u64::from(n) * 40)),
            ..CpuPart::new(CpuId(n))
        };
        let node = |n: u32| NodePart {
            slabs: Some(Slabs(200 - u64::from(n) * 100)),
            partial: Some(Slabs(step)),
            ..NodePart::new(NodeId(n))
        };
        cache.cpus = (0..if step == 0 { 40 } else { 2 }).map(cpu).collect();
        cache.nodes = (0..2).map(node).collect();
    }
    let system = &mut sample.snapshot.system;
    system.vmstat = [
        ("nr_slab_reclaimable", 2048),
        ("slabs_scanned", 100 + second * 7),
        ("pgfault", 5),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let stall = Stall {
        avg10: 1234,
        avg60: 7,
        avg300: 0,
        total_us: 65_000_000,
    };
    system.pressure = Some(Pressure {
        some: stall,
        full: Stall::default(),
    });
    system.free_blocks = vec![FreeBlocks {
        node: NodeId(0),
        zone: "Normal".to_owned(),
        free: vec![10, 3, 1],
    }];
    let race = Warning::new(WarningCode::Race, "dentry: more objects than room for them");
    sample.snapshot.warnings.push(race);
    let text = format!(
        "{} d_alloc+0x1/0x10 waste=60/2 age=10/20/30 pid=5-9 cpus=0,2 nodes=0\n   d_alloc+0x1/0x10\n   lookup+0x2/0x20\n\n4 ev\x1b[2Jil+0x1/0x2 age=1 pid=1\n",
        30 + second
    );
    let sites = collectors::parse::traces::parse(text.as_bytes(), SiteKind::Alloc).0;
    sample.sites = Some(SitesRead {
        id: "dentry".to_owned(),
        sites: Some(Box::new(sites)),
        warnings: Vec::new(),
    });
    sample
}

pub(super) fn model(settings: Settings, size: (u16, u16)) -> Model {
    let mut model = Model::new(settings, "a test", true);
    update(&mut model, Duration::ZERO, Msg::Resize(size.0, size.1));
    for second in 0..6 {
        let msg = Msg::Sample(Box::new(full_sample(second)));
        update(&mut model, Duration::from_secs(second), msg);
    }
    model
}

pub(super) fn press(model: &mut Model, keys: &str) {
    for key in keys.split_whitespace() {
        let press = Press::parse(key).unwrap_or_else(|| panic!("{key}"));
        update(model, Duration::from_secs(6), Msg::Press(press));
    }
}

pub(super) fn buffer(model: &Model) -> Buffer {
    let (width, height) = model.size;
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(model, &mut buffer, area);
    buffer
}

pub(super) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut out = String::new();
    for y in 0..area.height {
        let line: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text with the runs of styles under each line.
fn styled(buffer: &Buffer) -> String {
    let mut out = String::new();
    for (y, line) in (0..buffer.area.height).zip(text(buffer).lines()) {
        let _ = writeln!(out, "|{line}");
        let mut runs = String::new();
        let mut start = 0;
        for x in 1..=buffer.area.width {
            let style = |x: u16| {
                (
                    buffer[(x, y)].fg,
                    buffer[(x, y)].bg,
                    buffer[(x, y)].modifier,
                )
            };
            if x < buffer.area.width && style(x) == style(start) {
                continue;
            }
            let (fg, bg, modifier) = style(start);
            let mut words = Vec::new();
            if fg != Color::Reset {
                words.push(format!("{fg:?}"));
            }
            if bg != Color::Reset {
                words.push(format!("on {bg:?}"));
            }
            if modifier != Modifier::empty() {
                words.push(format!("{modifier:?}"));
            }
            if !words.is_empty() {
                let _ = write!(runs, " {start}-{}:{}", x - 1, words.join(","));
            }
            start = x;
        }
        if !runs.is_empty() {
            let _ = writeln!(out, "     {}", runs.trim_start());
        }
    }
    out
}

#[test]
fn the_screens_look_as_reviewed() {
    let looks = [
        ("colour", Theme::Ansi, Glyphs::UNICODE),
        ("mono", Theme::Mono, Glyphs::UNICODE),
        ("ascii", Theme::Mono, Glyphs::ASCII),
    ];
    for (look, theme, glyphs) in looks {
        for size in [(80, 24), (120, 40), (200, 60)] {
            for screen in SCREENS {
                let mut model = model(settings(theme, glyphs), size);
                press(&mut model, screen.key);
                let name = format!("{}-{}x{}-{look}", screen.name, size.0, size.1);
                insta::assert_snapshot!(name, styled(&buffer(&model)));
            }
        }
    }
}

#[test]
fn what_lies_over_a_screen_looks_as_reviewed() {
    for (name, keys) in [
        ("help", "?"),
        ("help-search", "? m a r k"),
        ("sort", "s"),
        ("columns", "c j"),
        ("filter", "/ a > 1"),
        ("palette", ": s"),
        ("held", "t t"),
        ("by-name", "A z"),
        ("since-mark", "m d"),
    ] {
        let mut model = model(settings(Theme::Ansi, Glyphs::UNICODE), (80, 24));
        press(&mut model, keys);
        insta::assert_snapshot!(format!("over-{name}"), styled(&buffer(&model)));
    }
    let mut model = model(settings(Theme::Ansi, Glyphs::UNICODE), (80, 24));
    model.settings.allow_write = true;
    model.settings.can_capture = true;
    press(&mut model, "S");
    insta::assert_snapshot!("over-confirm", styled(&buffer(&model)));
}

#[test]
fn no_size_is_too_small_for_any_screen_or_dialog() {
    let mut sizes: Vec<(u16, u16)> = (0..=32)
        .flat_map(|w| (0..=13).map(move |h| (w, h)))
        .collect();
    sizes.extend([(80, 24), (250, 70), (500, 3), (3, 200), (1000, 300)]);
    let overlays = [
        "",
        "?",
        "s",
        "c",
        "/",
        ":",
        "m d A",
        "t",
        "o v l l G",
        "v G G",
    ];
    for screen in SCREENS {
        for keys in overlays {
            let mut model = model(settings(Theme::Ansi, Glyphs::UNICODE), (80, 24));
            press(&mut model, screen.key);
            press(&mut model, keys);
            for size in &sizes {
                let at = Duration::from_secs(7);
                update(&mut model, at, Msg::Resize(size.0, size.1));
                let frame = buffer(&model);
                if size.0 >= 40 && size.1 >= 1 && (size.0 < 24 || size.1 < 5) {
                    assert!(text(&frame).contains("terminal too small"));
                }
            }
        }
    }
}

#[test]
fn without_colour_the_same_is_said() {
    for screen in SCREENS {
        let shown = |theme| {
            let mut model = model(settings(theme, Glyphs::UNICODE), (120, 40));
            press(&mut model, screen.key);
            buffer(&model)
        };
        let (colour, mono) = (shown(Theme::Ansi), shown(Theme::Mono));
        assert_eq!(text(&colour), text(&mono), "{}", screen.name);
        let plain = |b: &Buffer| {
            b.content
                .iter()
                .all(|c| c.fg == Color::Reset && c.bg == Color::Reset)
        };
        assert!(plain(&mono), "{}", screen.name);
        assert!(
            colour.content.iter().all(|c| c.bg == Color::Reset),
            "no painted background"
        );
    }
}

#[test]
fn in_ascii_there_is_nothing_else() {
    for screen in SCREENS {
        for keys in ["", "?", "s", "c", "t"] {
            let mut model = model(settings(Theme::Mono, Glyphs::ASCII), (120, 40));
            press(&mut model, screen.key);
            press(&mut model, keys);
            let text = text(&buffer(&model));
            assert!(text.is_ascii(), "{} {keys}: {text}", screen.name);
        }
    }
}

#[test]
fn a_hostile_name_commands_nothing() {
    let mut model = model(settings(Theme::Ansi, Glyphs::UNICODE), (80, 24));
    press(&mut model, "G");
    let text = text(&buffer(&model));
    assert!(text.contains("ev?[2Jil"), "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_narrow_terminal_shows_the_most_important_columns() {
    let model = model(settings(Theme::Mono, Glyphs::ASCII), (40, 12));
    let text = text(&buffer(&model));
    let heading = text.lines().nth(1).unwrap();
    assert!(
        heading.contains("Name") && heading.contains("Space"),
        "{heading}"
    );
    assert!(!heading.contains("Loss"), "{heading}");
}

#[test]
fn an_unknown_figure_is_a_dash_and_an_estimate_is_marked() {
    let mut model = model(settings(Theme::Mono, Glyphs::UNICODE), (120, 40));
    press(&mut model, "s n");
    let text = text(&buffer(&model));
    let line = text
        .lines()
        .find(|l| l.contains("long_name"))
        .unwrap_or_else(|| text.lines().find(|l| l.contains("a_cache_with")).unwrap());
    assert!(line.contains(" - "), "{line}");
    let dentry = text.lines().find(|l| l.contains("dentry")).unwrap();
    assert!(dentry.contains("~160000"), "{dentry}");
}
