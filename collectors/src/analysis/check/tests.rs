//! Rules on made snapshots.

use std::time::Duration;

use super::*;
use crate::analysis::diff::diff;
use crate::model::{Cache, CacheId, Layer, Origin, OriginKind, Quantity, System, Warnings};

/// Caches by name and slabs of one page; `None`: the number is not known.
fn snapshot(caches: &[(&str, Option<u64>)]) -> Snapshot {
    let make = |(n, (name, slabs)): (usize, &(&str, Option<u64>))| {
        let mut cache = Cache::new(CacheId(u32::try_from(n).unwrap()), *name);
        cache.set_exact(Quantity::Order, 0, Layer::Sysfs);
        if let Some(slabs) = slabs {
            cache.set_exact(Quantity::Slabs, *slabs, Layer::Sysfs);
        }
        cache
    };
    let mut system = System {
        page_size: 4096,
        ..System::default()
    };
    system.meminfo.mem_total = Some(Bytes(4096 * 1000));
    Snapshot {
        origin: Origin::new(OriginKind::Kernel, "/"),
        system,
        caches: caches.iter().enumerate().map(make).collect(),
        warnings: Warnings::default(),
    }
}

fn rule(caches: &str, warning: &str, critical: &str) -> Rule {
    let read = |text: &str| (!text.is_empty()).then(|| Condition::parse(text).unwrap());
    Rule {
        name: "a rule".to_owned(),
        caches: Filter::parse(caches).unwrap(),
        sum: false,
        warning: read(warning),
        critical: read(critical),
        missing: Severity::Unknown,
    }
}

const NOW: &[(&str, Option<u64>)] = &[("a", Some(10)), ("b", Some(300)), ("c", Some(100))];

#[test]
fn the_worst_cache_decides_and_all_beyond_a_limit_are_named() {
    let now = snapshot(NOW);
    let of = |warning, critical| judge(&rule("", warning, critical), &now, None);
    assert_eq!(of("slabs > 300", "").severity, Severity::Ok);
    assert_eq!(of("slabs >= 300", "").severity, Severity::Warning);
    let both = of("slabs > 50", "slabs > 200");
    assert_eq!((both.severity, both.caches), (Severity::Critical, 3));
    let hits: Vec<_> = both
        .hits
        .iter()
        .map(|h| (h.cache.as_deref().unwrap(), h.severity))
        .collect();
    assert_eq!(hits, [("b", Severity::Critical), ("c", Severity::Warning)]);
    let little = of("slabs < 20", "slabs < 5");
    assert_eq!(little.severity, Severity::Warning);
    assert_eq!(little.worst.unwrap().cache.as_deref(), Some("a"));
    // 30 % of the machine's memory of 1000 pages.
    assert_eq!(of("memory >= 30%", "").severity, Severity::Warning);
    assert_eq!(of("memory > 30%", "").severity, Severity::Ok);
    assert_eq!(
        judge(&rule("a", "", ""), &now, None).severity,
        Severity::Unknown
    );
}

#[test]
fn a_sum_is_of_the_chosen_caches() {
    let now = snapshot(NOW);
    let sum = |caches: &str, limit: &str| {
        let mut rule = rule(caches, limit, "");
        rule.sum = true;
        judge(&rule, &now, None)
    };
    let all = sum("", "slabs > 400");
    assert_eq!(
        (all.severity, all.worst.as_ref().unwrap().value),
        (Severity::Warning, 410.0)
    );
    assert_eq!(all.hits[0].cache, None);
    assert_eq!(sum("a or c", "slabs > 400").severity, Severity::Ok);
    assert_eq!(sum("memory>1G", "slabs > 400").severity, Severity::Ok);
}

#[test]
fn what_is_not_known_is_never_within_limits() {
    let now = snapshot(&[("a", None), ("b", Some(300))]);
    let of = |caches: &str, limit: &str| judge(&rule(caches, limit, ""), &now, None);
    let open = of("", "slabs > 400");
    assert_eq!((open.severity, open.unknown), (Severity::Unknown, 1));
    assert!(open.why.unwrap().contains("1 of 2"));
    // One beyond the limit is enough.
    assert_eq!(of("", "slabs > 200").severity, Severity::Warning);
    assert_eq!(of("b", "slabs > 400").severity, Severity::Ok);
    let mut sum = rule("", "slabs > 200", "");
    sum.sum = true;
    assert_eq!(judge(&sum, &now, None).severity, Severity::Warning);
    let mut little = rule("", "slabs < 400", "");
    little.sum = true;
    assert_eq!(judge(&little, &now, None).severity, Severity::Unknown);
    let mut bare = snapshot(NOW);
    bare.system.meminfo.mem_total = None;
    let share = judge(&rule("", "memory > 5%", ""), &bare, None);
    assert_eq!(share.severity, Severity::Unknown);
    assert!(share.why.unwrap().contains("machine's memory"));
}

#[test]
fn a_share_of_an_empty_cache_is_no_missing_figure() {
    let mut now = snapshot(&[("empty", Some(0)), ("full", Some(4))]);
    for (cache, objects) in now.caches.iter_mut().zip([0, 100]) {
        for q in [Quantity::Objects, Quantity::TotalObjects] {
            cache.set_exact(q, objects, Layer::Sysfs);
        }
    }
    let outcome = judge(&rule("", "use < 50%", ""), &now, None);
    assert_eq!((outcome.severity, outcome.caches), (Severity::Ok, 1));
}

#[test]
fn a_name_that_no_cache_has_is_not_silently_fine() {
    let now = snapshot(NOW);
    let mut rule = rule("dentri", "slabs > 5", "");
    assert_eq!(judge(&rule, &now, None).severity, Severity::Unknown);
    rule.missing = Severity::Ok;
    let fine = judge(&rule, &now, None);
    assert_eq!((fine.severity, fine.caches), (Severity::Ok, 0));
    // A comparison that holds for none is a usual answer.
    for caches in ["slabs>5000", "not slabs<5000", "a and slabs>5000"] {
        rule.caches = Filter::parse(caches).unwrap();
        rule.missing = Severity::Critical;
        assert_eq!(judge(&rule, &now, None).severity, Severity::Ok, "{caches}");
    }
}

#[test]
fn growth_is_per_hour_against_the_earlier_sample() {
    let before = snapshot(&[("a", Some(10)), ("b", Some(200)), ("gone", Some(80))]);
    let now = snapshot(&[("a", Some(10)), ("b", Some(300)), ("new", Some(5))]);
    let half = diff(&before, &now, Some(Duration::from_secs(1800)));
    let of = |limit: &str| judge(&rule("", limit, ""), &now, Some(&half));
    assert_eq!(of("slabs/h > 200").severity, Severity::Ok);
    let hit = of("slabs/h >= 200");
    assert_eq!(hit.severity, Severity::Warning);
    assert_eq!((hit.hits.len(), hit.hits[0].value), (1, 200.0));
    // 100 % of what it had, in an hour.
    assert_eq!(
        judge(&rule("b", "slabs/h >= 100%", ""), &now, Some(&half)).severity,
        Severity::Warning
    );
    assert_eq!(
        judge(&rule("b", "slabs/h > 100%", ""), &now, Some(&half)).severity,
        Severity::Ok
    );
    let mut sum = rule("", "slabs/h > 49", "");
    sum.sum = true;
    // 100 more, 80 fewer, 5 new: 25 in half an hour.
    let outcome = judge(&sum, &now, Some(&half));
    assert_eq!(
        (outcome.severity, outcome.worst.unwrap().value),
        (Severity::Warning, 50.0)
    );
}

#[test]
fn growth_without_an_earlier_sample_or_a_time_is_not_known() {
    let now = snapshot(NOW);
    let rule = rule("", "slabs/h > 1", "");
    let alone = judge(&rule, &now, None);
    assert_eq!(alone.severity, Severity::Unknown);
    assert!(alone.why.unwrap().contains("earlier sample"));
    let timeless = diff(&now, &now, None);
    let outcome = judge(&rule, &now, Some(&timeless));
    assert_eq!(outcome.severity, Severity::Unknown);
    assert!(outcome.why.unwrap().contains("time between"));
}

#[test]
fn what_is_kept_of_a_rule_is_bounded() {
    let names: Vec<_> = (0..150).map(|n| format!("cache-{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (&**name, Some(9))).collect();
    let outcome = judge(&rule("", "slabs > 1", ""), &snapshot(&many), None);
    assert_eq!((outcome.hits.len(), outcome.more), (MAX_HITS, 50));
}

#[test]
fn a_cache_that_may_belong_makes_the_rule_unknown_only_if_that_matters() {
    let now = snapshot(&[("a", Some(10)), ("b", Some(300)), ("c", None)]);
    let of = |caches: &str, limit: &str, sum| {
        let mut rule = rule(caches, limit, "");
        rule.sum = sum;
        judge(&rule, &now, None)
    };
    // The number of objects is known of none of them.
    let open = of("objects > 5", "slabs > 200", false);
    assert_eq!(open.severity, Severity::Unknown);
    assert_eq!((open.caches, open.unknown), (2, 2), "a is within limits");
    assert!(open.why.unwrap().contains("2 of 2 caches belong"));
    assert_eq!(
        of("objects > 5 and a", "slabs > 200", false).severity,
        Severity::Ok
    );
    // As one known to belong, which is beyond the limit, says what there is to say.
    let known = of("objects > 5 or b", "slabs > 200", false);
    assert_eq!((known.severity, known.unknown), (Severity::Warning, 1));
    // Caches that may be part of a sum leave a lower bound.
    let sum = |limit| of("objects > 5 or b", limit, true).severity;
    assert_eq!(sum("slabs > 200"), Severity::Warning);
    assert_eq!(sum("slabs > 305"), Severity::Unknown);
    assert_eq!(sum("slabs < 305"), Severity::Unknown);
}
