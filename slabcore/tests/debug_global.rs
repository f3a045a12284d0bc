//! This test program runs on the engine with all debugging on.
#![cfg(not(loom))]

use slabcore::{EngineConfig, SlabAlloc};
use std::collections::BTreeMap;

#[global_allocator]
static GLOBAL: SlabAlloc = SlabAlloc::with(EngineConfig {
    reserve: 8 << 30,
    debug: Some("FZPU"),
    ..EngineConfig::new()
});

#[test]
fn an_ordinary_program_has_no_findings() {
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            std::thread::spawn(move || {
                let mut words: BTreeMap<String, Vec<usize>> = BTreeMap::new();
                for i in 0..2000 {
                    let word = format!("word {} of {worker}", i % 77);
                    words.entry(word).or_default().push(i);
                }
                // Grows and shrinks inside a class, where the guarded slack moves.
                let mut text = String::new();
                for i in 0..300 {
                    text.push_str("abcdefg");
                    if i % 10 == 0 {
                        text.truncate(text.len() / 2);
                        text.shrink_to_fit();
                    }
                }
                let zeroed = vec![0u8; 1 + text.len() % 100];
                assert!(zeroed.iter().all(|byte| *byte == 0));
                words.values().map(Vec::len).sum::<usize>()
            })
        })
        .collect();
    for _ in 0..5 {
        assert_eq!(GLOBAL.engine().unwrap().validate().findings, []);
    }
    for worker in workers {
        assert_eq!(worker.join().unwrap(), 2000);
    }
    let engine = GLOBAL.engine().unwrap();
    assert_eq!(engine.validate().findings, []);
    let snapshot = engine.snapshot();
    assert!(snapshot.caches.iter().all(|cache| cache.policy.is_none()));
    assert!(snapshot.caches.iter().all(|cache| cache.faults == 0));
}
