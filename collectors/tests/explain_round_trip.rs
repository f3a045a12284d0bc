//! Reports of every shape, written for random layouts and faults, in random
//! wrapping: what was planted has to be recovered.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

#[path = "support/slub_log.rs"]
mod slub_log;

use collectors::analysis::explain::finding::{Part, State};
use collectors::analysis::explain::{Class, explain};
use collectors::parse::kernel_log::{self, report::Shape};
use proptest::prelude::*;
use slub_log::{Fault, Scene, Transport};

fn shape() -> impl Strategy<Value = Shape> {
    prop::sample::select(vec![
        Shape::NoTaint,
        Shape::Info,
        Shape::Plain,
        Shape::Bracket,
    ])
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (1usize..8).prop_map(|len| Fault::Overflow { len }),
        (1usize..8).prop_map(|len| Fault::Underflow { len }),
        (0usize..100, 1usize..24).prop_map(|(at, len)| Fault::UseAfterFree { at, len }),
        (0usize..100, 0u32..8).prop_map(|(at, bit)| Fault::Flip { at, bit }),
        Just(Fault::DoubleFree),
        Just(Fault::FreeChain),
        (1usize..6).prop_map(|count| Fault::Remaining { count }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("iwl_cmd_pool:0000:04:00.0".to_owned()),
        Just("pgtable-2^11".to_owned()),
        Just("page->ptl".to_owned()),
        "[A-Za-z][A-Za-z0-9_^:-]{0,20}[a-z0-9]",
    ]
}

prop_compose! {
    fn scene()(
        cache in name(),
        shape in shape(),
        fault in fault(),
        words in 1usize..60,
        slot in 0usize..40,
        // 32-bit kernels have half of the address.
        wide in any::<bool>(),
        hashed in any::<bool>(),
        seed in any::<u64>(),
    ) -> Scene {
        // Hashed pointers came with 4.15.
        let hashed = hashed && shape != Shape::NoTaint;
        Scene { cache, shape, fault, size: words * 8, slot, wide, hashed, seed }
    }
}

fn transport() -> impl Strategy<Value = Transport> {
    (
        prop::sample::select(vec!["", "> ", ">>>> ", "> | "]),
        prop::sample::select(vec!["", "time", "caller", "syslog", "kmsg", "date"]),
        // Columns for the text of a line, without its prefix.
        prop::option::of(48usize..100),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(quote, prefix, wrap, interleave, padding)| Transport {
            quote,
            prefix,
            // A prefix and a quote mark come before each half of a line that
            // the log itself wrapped; only mails wrap, and quote once more.
            wrap: wrap
                .filter(|_| quote.is_empty())
                .map(|room| room + slub_log::prefix_len(prefix)),
            // Without callers two reports at once cannot be told apart.
            interleave: interleave && prefix == "caller",
            padding,
        })
}

/// What the scene is, as the explanation should say it.
fn check(scene: &Scene, text: &str) {
    let found = explain(&kernel_log::parse(text.as_bytes()));
    let of = |f: &&collectors::analysis::explain::Finding| {
        f.cache.as_ref().is_some_and(|c| c.name == scene.cache)
    };
    let all: Vec<_> = found.findings.iter().filter(of).collect();
    assert_eq!(all.len(), 1, "{text}\n{found:#?}");
    let finding = all[0];
    let expected = scene.fault.class(scene);
    assert_eq!(finding.class, expected, "{text}\n{finding:#?}");
    if let Some((part, from, bytes)) = scene.fault.damage(scene) {
        let damage = finding.damage().unwrap();
        assert_eq!(damage.part, part, "{text}");
        assert_eq!(damage.offset_in_object, Some(from), "{text}");
        assert_eq!(damage.len, Some(bytes.len() as u64), "{text}\n{damage:?}");
        assert_eq!(damage.found, bytes, "{text}");
        let state = if part == Part::Poison {
            State::Free
        } else {
            State::InUse
        };
        let object = finding.object.as_ref().unwrap();
        assert_eq!(object.state, Some(state));
        assert_eq!(object.size, Some(scene.size as u64), "{text}");
        assert_eq!(object.offset_in_slab, Some(scene.object_at() as u64));
        assert_eq!(object.address.is_some(), !scene.hashed, "{text}");
    }
    let slab = finding.slab.as_ref().unwrap();
    assert_eq!((slab.objects, slab.used), (Some(64), Some(7)));
    let allocated = finding.allocated.as_ref();
    if let Fault::Remaining { count } = scene.fault {
        assert_eq!(
            finding.left.iter().map(|l| l.objects).sum::<u64>(),
            count as u64
        );
        assert_eq!(
            finding.left[0].symbol.as_deref(),
            Some("foo_open+0x33/0x40 [foo]")
        );
    } else {
        let allocated = allocated.unwrap();
        assert_eq!(allocated.symbol, "foo_open+0x33/0x40 [foo]", "{text}");
        assert_eq!(
            (allocated.age, allocated.cpu, allocated.pid),
            (Some(9), Some(3), Some(41))
        );
    }
    if finding.class == Class::DoubleFree {
        assert_eq!(
            finding.freed.as_ref().unwrap().symbol,
            "foo_close+0x12/0x80 [foo]"
        );
        assert_eq!(
            finding.detected_by.as_deref(),
            Some("foo_release+0x44/0x90 [foo]")
        );
    }
    assert_eq!(
        finding.detected.comm.as_deref(),
        Some("a program"),
        "{text}"
    );
    assert_eq!(finding.detected.pid, Some(1234));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_was_planted_is_recovered(scene in scene(), transport in transport()) {
        let text = transport.carry(&scene.report());
        check(&scene, &text);
    }

    /// Two processors print at once; each line says which.
    #[test]
    fn two_reports_at_once_are_both_recovered(a in scene(), b in scene()) {
        prop_assume!(a.cache != b.cache);
        let text = slub_log::zip(&a.report(), &b.report());
        check(&a, &text);
        check(&b, &text);
    }

    /// Any damage to the text costs at most what it hit.
    #[test]
    fn damaged_reports_are_survived(
        scene in scene(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut text = scene.report().into_bytes();
        for (at, byte) in hits {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text.truncate(cut.index(text.len()) + 1);
        let found = explain(&kernel_log::parse(&text));
        prop_assert!(found.findings.len() <= 60);
        for finding in &found.findings {
            prop_assert!(!finding.headline.is_empty());
            prop_assert!(finding.consequence_of.is_none_or(|at| at < found.findings.len()));
        }
    }
}

/// Every width that a mail program may wrap the first line of a report at.
#[test]
fn a_report_whose_first_line_is_wrapped_is_whole() {
    for fault in [Fault::Overflow { len: 1 }, Fault::FreeChain] {
        for wrap in 48..100 {
            let scene = Scene {
                cache: "iwl_cmd_pool:0000:04:00.0".to_owned(),
                shape: Shape::Bracket,
                fault,
                size: 8,
                slot: 2,
                wide: true,
                hashed: false,
                seed: 0,
            };
            let transport = Transport {
                quote: "",
                prefix: "",
                wrap: Some(wrap),
                interleave: false,
                padding: false,
            };
            check(&scene, &transport.carry(&scene.report()));
        }
    }
}
