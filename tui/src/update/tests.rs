//! What keys do, as a user would say it.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::{Overlay, Settings};
use crate::msg::Change;
use crate::testing::{cache, sample};

/// A model with so many samples of three caches; `a` grows.
fn model(samples: u64) -> Model {
    let mut model = Model::new(Settings::default(), "a test", true);
    for second in 0..samples {
        let caches = vec![cache("a", 10 + second), cache("b", 40), cache("c", 20)];
        let msg = Msg::Sample(Box::new(sample(caches, second)));
        update(&mut model, Duration::from_secs(second), msg);
    }
    model
}

/// Presses keys by name; a text in quotes is typed.
fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    let at = Duration::from_secs(1000);
    for word in keys.split_whitespace() {
        let typed = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
        let presses: Vec<Press> = match typed {
            Some(text) => text
                .chars()
                .map(|c| Press::parse(&c.to_string()).unwrap())
                .collect(),
            None => vec![Press::parse(word).unwrap_or_else(|| panic!("{word}"))],
        };
        for press in presses {
            effects.extend(update(model, at, Msg::Press(press)));
        }
    }
    effects
}

fn selected(model: &Model) -> String {
    model.selected().unwrap().1.name.to_string()
}

fn names(model: &Model) -> Vec<String> {
    let shown = model.time.shown.as_ref().unwrap();
    let lines = model.list.lines.iter();
    lines
        .map(|l| shown.snapshot.caches[l.place].name.to_string())
        .collect()
}

fn slabs_of_a(model: &Model) -> u64 {
    let shown = model.time.shown.as_ref().unwrap();
    let cache = shown.snapshot.named("a").next().unwrap();
    cache.slabs().unwrap().value.get()
}

#[test]
fn the_selection_stays_with_its_cache_while_it_moves() {
    let mut model = model(2);
    assert_eq!(names(&model), ["b", "c", "a"]);
    press(&mut model, "G");
    assert_eq!(selected(&model), "a");
    press(&mut model, "s d");
    assert_eq!(names(&model), ["a", "b", "c"]);
    assert_eq!((selected(&model).as_str(), model.list.index()), ("a", 0));
    press(&mut model, "s n r j");
    assert_eq!(names(&model), ["c", "b", "a"]);
    assert_eq!(selected(&model), "a");
}

#[test]
fn a_filter_is_typed_and_a_wrong_one_stays_to_be_mended() {
    let mut model = model(2);
    press(&mut model, "/ \"slabs>>\" enter");
    let Some(Overlay::Prompt(prompt)) = &model.overlay else {
        panic!("the prompt is open");
    };
    assert!(prompt.error.is_some());
    press(&mut model, "backspace \"15\" enter");
    assert_eq!(model.overlay, None);
    assert_eq!(names(&model), ["b", "c"]);
    // A bare word is a part of a name; esc takes the filter away.
    press(&mut model, "/ ctrl-u \"b\" enter");
    assert_eq!(names(&model), ["b"]);
    press(&mut model, "esc");
    assert_eq!(model.list.lines.len(), 3);
}

#[test]
fn stepping_back_and_forward_ends_live() {
    let mut model = model(5);
    assert_eq!(slabs_of_a(&model), 14);
    press(&mut model, "t t");
    assert_eq!((slabs_of_a(&model), model.time.paused), (12, true));
    press(&mut model, "T");
    assert_eq!(slabs_of_a(&model), 13);
    let caches = vec![cache("a", 99)];
    update(
        &mut model,
        Duration::from_secs(5),
        Msg::Sample(Box::new(sample(caches, 5))),
    );
    assert_eq!(slabs_of_a(&model), 13, "held");
    press(&mut model, "space");
    assert_eq!((slabs_of_a(&model), model.time.paused), (99, false));
}

#[test]
fn a_time_of_the_clock_or_ago_is_gone_to() {
    let mut model = model(30);
    press(&mut model, "b \"-10s\" enter");
    assert_eq!(slabs_of_a(&model), 10 + 19);
    press(&mut model, "b \"00:00:05\" enter");
    assert_eq!(slabs_of_a(&model), 15);
    press(&mut model, "b \"-2h\" enter");
    let Some(Overlay::Prompt(prompt)) = &model.overlay else {
        panic!("the prompt is open");
    };
    assert_eq!(prompt.error.as_deref(), Some("only the last 29s are kept"));
    press(&mut model, "esc b enter");
    assert!(!model.time.paused);
}

#[test]
fn changes_since_the_mark_need_a_mark() {
    let mut model = model(3);
    press(&mut model, "d");
    assert!(model.notice.as_ref().unwrap().bad && !model.since_mark);
    press(&mut model, "m d");
    assert!(model.since_mark);
    press(&mut model, "M");
    assert!(!model.since_mark && model.time.mark.is_none());
}

#[test]
fn the_kernel_is_changed_only_when_allowed_and_confirmed() {
    let mut model = model(2);
    assert_eq!(press(&mut model, "V y"), []);
    model.settings.allow_write = true;
    assert_eq!(press(&mut model, "V y"), [], "a demonstration or a file");
    model.settings.can_capture = true;
    assert_eq!(press(&mut model, "V esc"), []);
    assert_eq!(press(&mut model, "S enter"), []);
    let change = Effect::Change {
        change: Change::Shrink,
        cache: "b".to_owned(),
    };
    assert_eq!(press(&mut model, "S y"), [change]);
}

#[test]
fn the_palette_completes_runs_and_helps() {
    let mut model = model(2);
    press(&mut model, ": \"sor\" tab \"name\" enter");
    // "sor" is the beginning of three commands.
    assert!(matches!(model.overlay, Some(Overlay::Prompt(_))));
    press(&mut model, "ctrl-u \"sort\" space \"name\" enter");
    assert_eq!(
        (names(&model), model.overlay.clone()),
        (vec!["a".into(), "b".into(), "c".into()], None)
    );
    press(&mut model, ": \"revers\" enter");
    let Some(Overlay::Prompt(prompt)) = &model.overlay else {
        panic!("the prompt is open");
    };
    let says = "no command \"revers\": did you mean reverse?";
    assert_eq!(prompt.error.as_deref(), Some(says));
    press(&mut model, "tab enter");
    assert!(model.list.reverse);
    assert_eq!(
        press(&mut model, ": \"quit\" enter"),
        [Effect::Quit { keep: false }]
    );
}

#[test]
fn files_are_asked_for_by_names_that_tell_their_form() {
    let mut model = model(2);
    assert_eq!(press(&mut model, "e \"x.doc\" enter"), []);
    press(&mut model, "esc");
    let path = "x.svg".into();
    assert_eq!(
        press(&mut model, "e \"x.svg\" enter"),
        [Effect::Picture { path }]
    );
    assert!(
        model.overlay.is_none(),
        "the question is not in the picture"
    );
    let path = "x.csv".into();
    assert_eq!(
        press(&mut model, "e \"x.csv\" enter"),
        [Effect::Export { path }]
    );
    press(&mut model, "w");
    assert!(model.notice.as_ref().unwrap().bad, "no machine to save");
    model.settings.can_capture = true;
    let path = "s.tar.zst".into();
    assert_eq!(
        press(&mut model, "w \"s.tar.zst\" enter"),
        [Effect::Snapshot { path }]
    );
}

#[test]
fn a_sample_is_asked_to_have_what_is_shown_and_no_more() {
    let mut model = model(2);
    let demand = model.demand();
    assert!(!demand.counters && !demand.nodes && demand.focus.is_none());
    let effects = press(&mut model, "enter");
    let Some(Effect::Demand(demand)) = effects.first() else {
        panic!("{effects:?}");
    };
    assert_eq!(demand.focus.as_deref(), Some("b"));
    assert!(!demand.counters, "only of the cache that is shown");
    let effects = press(&mut model, "- / \"alloc_fastpath>1\" enter");
    let Some(Effect::Demand(demand)) = effects.last() else {
        panic!("{effects:?}");
    };
    assert!(demand.counters && demand.focus.is_none());
}

#[test]
fn columns_are_chosen_moved_and_never_all_gone() {
    let mut model = model(2);
    let first = model.list.columns[0].name();
    press(&mut model, "c J enter");
    assert_eq!(model.list.columns[1].name(), first);
    let count = model.list.columns.len();
    press(&mut model, "c space");
    assert_eq!(model.list.columns.len(), count - 1);
    for _ in 0..40 {
        press(&mut model, "g space");
    }
    assert!(!model.list.columns.is_empty());
}

#[test]
fn the_interval_has_bounds_and_a_file_has_none() {
    let mut model = model(2);
    let faster = press(&mut model, "+");
    assert_eq!(faster, [Effect::Interval(Duration::from_millis(500))]);
    press(&mut model, "+ + + +");
    assert_eq!(model.settings.interval, Duration::from_millis(100));
    press(&mut model, ": \"interval\" space \"3s\" enter");
    assert_eq!(
        press(&mut model, "_"),
        [Effect::Interval(Duration::from_secs(5))]
    );
    model.live = false;
    assert_eq!(press(&mut model, "+"), []);
}

#[test]
fn a_failed_sample_is_told_until_the_next_good_one() {
    let mut model = model(2);
    let at = Duration::from_secs(3);
    update(&mut model, at, Msg::Trouble("gone".to_owned()));
    assert_eq!(model.trouble.as_deref(), Some("gone"));
    let msg = Msg::Sample(Box::new(sample(vec![cache("a", 1)], 4)));
    update(&mut model, at, msg);
    assert_eq!(model.trouble, None);
}

#[test]
fn what_it_costs_is_told_over_several_seconds() {
    let model = model(12);
    let cost = model.cost.unwrap();
    assert!((cost - 0.004).abs() < 1e-9, "{cost}");
}

/// Every key that means something anywhere, and some that do not.
fn any_press() -> impl Strategy<Value = Press> {
    let mut keys: Vec<Press> = crate::keys::bindings()
        .iter()
        .flat_map(|b| b.keys.clone())
        .filter_map(Press::parse)
        .collect();
    for extra in ["y", "a", "x", "ctrl-u", "backspace", "9", "left", "J", "K"] {
        keys.extend(Press::parse(extra));
    }
    prop::sample::select(keys)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_sequence_of_keys_and_samples_breaks_the_model(
        steps in prop::collection::vec(
            prop_oneof![
                4 => any_press().prop_map(Ok),
                1 => prop::collection::vec(0u64..50, 0..8).prop_map(Err),
            ],
            1..60,
        ),
        size in (0u16..200, 0u16..60),
    ) {
        let mut model = model(3);
        update(&mut model, Duration::ZERO, Msg::Resize(size.0, size.1));
        let area = ratatui::layout::Rect::new(0, 0, size.0, size.1);
        for (second, step) in (3u64..).zip(steps) {
            let msg = match step {
                Ok(press) => Msg::Press(press),
                Err(slabs) => {
                    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
                    let caches = names.iter().zip(slabs).map(|(n, s)| cache(n, s));
                    Msg::Sample(Box::new(sample(caches.collect(), second)))
                }
            };
            let effects = update(&mut model, Duration::from_secs(second), msg);
            let changes = |e: &Effect| matches!(e, Effect::Change { .. });
            prop_assert!(!effects.iter().any(changes), "not allowed");
            let last = model.list.lines.len();
            prop_assert!(model.list.index() < last.max(1));
            prop_assert!(model.list.top <= last);
            let mut buffer = ratatui::buffer::Buffer::empty(area);
            view::draw(&model, &mut buffer, area);
        }
    }
}
