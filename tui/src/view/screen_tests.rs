//! The screens besides list and cache, as a user goes through them.

use std::time::Duration;

use collectors::model::{Approx, OriginKind, Quantity};

use super::tests::{buffer, full_sample, model, press, settings, text};
use crate::glyphs::Glyphs;
use crate::model::{Model, Sample};
use crate::msg::{Change, Effect, Msg};
use crate::press::Press;
use crate::testing::{cache, sample};
use crate::theme::Theme;
use crate::update::update;

const SIZE: (u16, u16) = (120, 40);

fn empty(live: bool) -> Model {
    let mut model = Model::new(settings(Theme::Mono, Glyphs::UNICODE), "a test", live);
    update(&mut model, Duration::ZERO, Msg::Resize(SIZE.0, SIZE.1));
    model
}

fn take(model: &mut Model, sample: Sample) -> Vec<Effect> {
    update(model, sample.at, Msg::Sample(Box::new(sample)))
}

/// Presses one key and returns what is to be done.
fn key(model: &mut Model, key: &str) -> Vec<Effect> {
    let press = Press::parse(key).unwrap();
    update(model, Duration::from_secs(9), Msg::Press(press))
}

fn screen(model: &Model) -> String {
    text(&buffer(model))
}

fn line(model: &Model, with: &str) -> String {
    let screen = screen(model);
    let found = screen.lines().find(|l| l.contains(with));
    found
        .unwrap_or_else(|| panic!("no {with:?} in\n{screen}"))
        .to_owned()
}

/// 4 MiB of slabs, so that it is worth a remark; half of them in use.
fn large(name: &str, slabs: u64) -> collectors::model::Cache {
    cache(name, slabs)
}

#[test]
fn checks_name_the_cache_its_evidence_and_the_next_step_and_lead_to_it() {
    let mut model = empty(true);
    take(
        &mut model,
        sample(vec![large("big", 4000), cache("b", 9)], 0),
    );
    press(&mut model, "6");
    let seen = screen(&model);
    assert!(seen.contains("worth a look"), "{seen}");
    assert!(
        seen.contains("fragmentation") && seen.contains("objects"),
        "{seen}"
    );
    assert!(seen.contains("next: "), "{seen}");
    assert!(seen.contains("growth needs an earlier sample"), "{seen}");
    // From the first hit about the cache to its own screen, and back.
    while !line(&model, ">").contains("big") {
        press(&mut model, "j");
    }
    press(&mut model, "enter");
    assert_eq!(model.screen().name, "cache");
    assert_eq!(&*model.selected().unwrap().1.name, "big");
}

#[test]
fn checks_tell_growth_since_the_mark() {
    let mut model = empty(true);
    take(&mut model, sample(vec![large("big", 1000)], 0));
    press(&mut model, "m");
    take(&mut model, sample(vec![large("big", 1000)], 1));
    press(&mut model, "6");
    assert!(!screen(&model).contains("growth-holes") && !screen(&model).contains("-shaped"));
    let mut grown = large("big", 3000);
    grown.set(
        Quantity::Objects,
        Approx::exact(160_000),
        collectors::model::Layer::Sysfs,
    );
    take(&mut model, sample(vec![grown], 61));
    let seen = screen(&model);
    assert!(seen.contains("cache-shaped-growth"), "{seen}");
    assert!(seen.contains("objects_before 32000"), "{seen}");
    assert!(seen.contains("since the mark, 1m01s ago"), "{seen}");
}

#[test]
fn checks_tell_what_the_validator_said() {
    let mut model = model(settings(Theme::Mono, Glyphs::UNICODE), SIZE);
    press(&mut model, "6");
    press(&mut model, "G G");
    assert!(screen(&model).contains("nothing was validated yet"));
    assert!(screen(&model).contains("needs --allow-write"));
    assert!(screen(&model).contains("race: dentry: more objects"));
    for done in [
        Ok("dentry: validate done".to_owned()),
        Err("refused".to_owned()),
    ] {
        let msg = Msg::Changed(Change::Validate, "dentry".to_owned(), done);
        update(&mut model, Duration::from_secs(3), msg);
    }
    let seen = screen(&model);
    assert!(seen.contains("dentry: validate done (2s ago)"), "{seen}");
    assert!(seen.contains("!! dentry: refused"), "{seen}");
    assert!(line(&model, "worth a look").contains("!! 1 failed"));
}

#[test]
fn changes_are_sorted_by_their_size_and_say_what_came_and_went() {
    let mut model = empty(true);
    take(
        &mut model,
        sample(
            vec![cache("a", 10), cache("gone", 500), cache("same", 7)],
            0,
        ),
    );
    press(&mut model, "4");
    assert!(screen(&model).contains("no sample to compare with yet"));
    take(
        &mut model,
        sample(vec![cache("a", 13), cache("same", 7), cache("new", 40)], 5),
    );
    let seen = screen(&model);
    assert!(seen.contains("no mark is set: m sets one"), "{seen}");
    assert!(line(&model, "since the first full sample").contains("5s ago"));
    let place = |name: &str| seen.lines().position(|l| l.contains(name)).unwrap();
    assert!(
        place("gone") < place("new") && place("new") < place(" a  "),
        "{seen}"
    );
    assert!(line(&model, "gone ").contains("vanished") && line(&model, "gone ").contains("-500"));
    assert!(line(&model, " new ").contains("appeared"));
    assert!(seen.contains("caches that did not change: 1"), "{seen}");
    // The cursor stays with its cache when the order changes.
    press(&mut model, "G");
    assert!(line(&model, ">").contains(" a") || line(&model, ">").contains(">a"));
    press(&mut model, "v");
    assert!(line(&model, ">").contains(">a"), "{}", screen(&model));
    assert!(screen(&model).contains("v+Objects"));
    press(&mut model, "enter");
    assert_eq!(&*model.selected().unwrap().1.name, "a");
}

#[test]
fn a_mark_is_what_changes_are_counted_from() {
    let mut model = empty(true);
    take(&mut model, sample(vec![cache("a", 10)], 0));
    take(&mut model, sample(vec![cache("a", 20)], 1));
    press(&mut model, "4 m");
    assert!(screen(&model).contains("the mark is at this very sample"));
    take(&mut model, sample(vec![cache("a", 21)], 8));
    let row = line(&model, ">a");
    assert!(row.contains("+1") && !row.contains("+11"), "{row}");
    assert!(
        screen(&model).contains("slabs 20 to 21"),
        "{}",
        screen(&model)
    );
    assert!(line(&model, "since the mark").contains("7s ago"));
    press(&mut model, "/");
    for letter in ["z", "z", "enter"] {
        press(&mut model, letter);
    }
    assert!(
        screen(&model).contains("nothing changed"),
        "the filter holds here too"
    );
}

#[test]
fn the_matrix_turns_to_nodes_and_scrolls_sideways() {
    let mut model = model(settings(Theme::Mono, Glyphs::UNICODE), (80, 24));
    press(&mut model, "3");
    let seen = screen(&model);
    assert!(seen.contains("slabs on the partial list, by CPU"), "{seen}");
    assert!(
        seen.contains("0 to the left") && seen.contains("to the right: h l"),
        "{seen}"
    );
    assert!(
        line(&model, "Cache").contains("C0 ") && !seen.contains("C39"),
        "{seen}"
    );
    // Not in the list of this source: not known, which is not 0.
    assert!(line(&model, "dentry").trim_end().ends_with('-'), "{seen}");
    assert!(
        line(&model, "a_cache").contains("~5"),
        "a sum of what is known: {seen}"
    );
    for _ in 0..60 {
        press(&mut model, "l");
    }
    assert!(line(&model, "Cache").contains("C39"), "{}", screen(&model));
    assert!(line(&model, "kmalloc-64").contains("117"));
    press(&mut model, "o");
    assert!(line(&model, "Cache").contains("N0") && line(&model, "kmalloc-64").contains("200"));
    assert!(
        line(&model, "kmalloc-64").contains("300"),
        "the sum of the nodes"
    );
    press(&mut model, "v");
    assert!(screen(&model).contains("slabs on the partial list, by node"));
    // It is the list: the cursor and the order are the same.
    press(&mut model, "G enter");
    assert_eq!(model.screen().name, "cache");
}

#[test]
fn a_cpu_that_a_list_leaves_out_holds_nothing() {
    let mut sample = full_sample(0);
    let of = &mut sample.snapshot.caches[1];
    of.set_exact(
        Quantity::SlabsCpuPartial,
        3,
        collectors::model::Layer::Sysfs,
    );
    of.cpus.truncate(1);
    let mut model = empty(true);
    take(&mut model, sample);
    press(&mut model, "3");
    let row = line(&model, "kmalloc-64");
    assert_eq!(row.split_whitespace().last(), Some("0"), "{row}");
}

#[test]
fn the_matrix_says_why_it_is_empty() {
    let mut model = empty(true);
    take(&mut model, sample(vec![cache("a", 1)], 0));
    press(&mut model, "3");
    assert!(screen(&model).contains("CONFIG_SLUB_CPU_PARTIAL"));
    press(&mut model, "o");
    assert!(screen(&model).contains("need root"));
    assert!(model.demand().nodes && !model.demand().cpus);
}

#[test]
fn the_system_screen_has_rates_and_says_what_is_missing_and_why() {
    let mut model = model(settings(Theme::Mono, Glyphs::UNICODE), (120, 60));
    press(&mut model, "7");
    assert!(model.demand().memory);
    let seen = screen(&model);
    assert!(line(&model, "slabs_scanned").contains("+7/s"), "{seen}");
    assert!(line(&model, "SReclaimable").contains("8.00M"), "{seen}");
    assert!(
        line(&model, "! some").contains("12.34%") && seen.contains("1m05s"),
        "{seen}"
    );
    assert!(line(&model, "node 0 Normal").contains("10 / 20"), "{seen}");
    assert!(seen.contains("not there: KReclaimable"), "{seen}");
    assert!(!seen.contains("pgfault"), "{seen}");
    // Earlier samples are kept without these: not of then, so not shown.
    press(&mut model, "t");
    assert!(screen(&model).contains("not kept for samples before the newest"));
    let mut file = empty(false);
    let mut one = sample(vec![cache("a", 1)], 0);
    one.snapshot.origin.kind = OriginKind::Capture;
    take(&mut file, one);
    press(&mut file, "7");
    assert!(screen(&file).contains("not in this file"));
}

#[test]
fn without_psi_the_reason_is_told() {
    let mut sample = full_sample(0);
    sample.snapshot.system.pressure = None;
    let mut model = empty(true);
    take(&mut model, sample);
    press(&mut model, "7");
    assert!(
        screen(&model).contains("without CONFIG_PSI"),
        "{}",
        screen(&model)
    );
}

#[test]
fn call_sites_are_read_when_their_screen_is_opened_and_when_asked_for() {
    let look = Effect::Look("dentry".to_owned());
    let mut model = empty(true);
    let bare = |second| {
        let mut sample = full_sample(second);
        sample.sites = None;
        sample
    };
    assert_eq!(take(&mut model, bare(0)), []);
    assert_eq!(key(&mut model, "5").first(), Some(&look));
    assert!(screen(&model).contains("reading the call sites of dentry"));
    assert_eq!(take(&mut model, full_sample(1)), []);
    assert!(
        line(&model, ">d_alloc").contains("31"),
        "{}",
        screen(&model)
    );
    assert!(screen(&model).contains("age 10/20/30 jiffies, pid 5-9, cpus 0,2, nodes 0"));
    // Later samples do not read them, and their age is told.
    for second in 2..6 {
        assert_eq!(take(&mut model, bare(second)), []);
    }
    assert!(screen(&model).contains("read 4s ago"), "{}", screen(&model));
    press(&mut model, "v");
    assert!(
        screen(&model).contains("lookup+0x2/0x20"),
        "the stack of the picked one"
    );
    press(&mut model, "m");
    assert!(key(&mut model, "R").contains(&look));
    assert_eq!(take(&mut model, full_sample(9)), []);
    assert!(line(&model, ">d_alloc").contains("+8"), "since the mark");
    press(&mut model, "o");
    assert!(screen(&model).contains("who freed them"));
    press(&mut model, "1");
    assert!(
        key(&mut model, "5").contains(&look),
        "opened again, read again"
    );
}

#[test]
fn call_sites_are_asked_for_again_after_a_sample_failed() {
    let look = Effect::Look("a".to_owned());
    let mut model = empty(true);
    take(&mut model, sample(vec![cache("a", 1)], 0));
    assert!(key(&mut model, "5").contains(&look));
    let trouble = Msg::Trouble("it went away".to_owned());
    assert_eq!(update(&mut model, Duration::from_secs(1), trouble), []);
    assert_eq!(take(&mut model, sample(vec![cache("a", 1)], 2)), [look]);
    assert_eq!(take(&mut model, sample(vec![cache("a", 1)], 3)), []);
}

#[test]
fn without_call_sites_it_says_what_to_do() {
    let mut model = empty(true);
    take(&mut model, sample(vec![cache("a", 1)], 0));
    press(&mut model, "5");
    let mut read = sample(vec![cache("a", 1)], 1);
    read.sites = Some(crate::model::SitesRead {
        id: "a".to_owned(),
        sites: None,
        warnings: vec!["sys/kernel/debug/slab/a/alloc_traces: permission denied".to_owned()],
    });
    take(&mut model, read);
    let seen = screen(&model);
    assert!(seen.contains("booted with slab_debug=U,a"), "{seen}");
    assert!(seen.contains("permission denied"), "{seen}");
    let mut file = empty(false);
    let mut one = sample(vec![cache("a", 1)], 0);
    one.snapshot.origin.kind = OriginKind::Demo;
    take(&mut file, one);
    assert_eq!(key(&mut file, "5"), []);
    assert!(screen(&file).contains("the caches of the demonstration do not record them"));
}
