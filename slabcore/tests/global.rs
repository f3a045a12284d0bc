//! This test program runs on the engine: every allocation of it, from before `main` on.
#![cfg(not(loom))]

use slabcore::{EngineConfig, SlabAlloc};
use std::collections::HashMap;
use std::sync::mpsc::channel;

#[global_allocator]
static GLOBAL: SlabAlloc = SlabAlloc::with(EngineConfig {
    reserve: 8 << 30,
    ..EngineConfig::new()
});

#[test]
fn an_ordinary_program_runs_on_it() {
    let mut words: HashMap<String, Vec<usize>> = HashMap::new();
    for i in 0..20_000 {
        words
            .entry(format!("word {}", i % 777))
            .or_default()
            .push(i);
    }
    assert_eq!(words.values().map(Vec::len).sum::<usize>(), 20_000);
    let big = vec![0u8; 10 << 20];
    assert!(big.iter().all(|byte| *byte == 0));
    drop((words, big));
    let engine = GLOBAL.engine().unwrap();
    assert_eq!(engine.validate().findings, []);
    let snapshot = engine.snapshot();
    assert_eq!(snapshot.caches.len(), 13);
    assert!(
        snapshot
            .caches
            .iter()
            .all(|cache| cache.objects <= cache.total_objects)
    );
}

#[test]
fn threads_come_and_go_and_free_what_others_made() {
    let (to, from) = channel::<Box<[u64; 20]>>();
    let consumer = std::thread::spawn(move || from.iter().map(|b| b[7]).sum::<u64>());
    for round in 0..50 {
        let to = to.clone();
        std::thread::spawn(move || {
            thread_local!(static KEPT: std::cell::RefCell<Vec<String>> = const {
                std::cell::RefCell::new(vec![])
            });
            KEPT.with_borrow_mut(|kept| kept.push(format!("freed at thread exit {round}")));
            for i in 0..200 {
                to.send(Box::new([i; 20])).unwrap();
            }
        })
        .join()
        .unwrap();
    }
    drop(to);
    assert_eq!(consumer.join().unwrap(), 50 * (199 * 200 / 2));
    assert_eq!(GLOBAL.engine().unwrap().validate().findings, []);
}

#[test]
fn what_grows_keeps_its_contents_and_moves_seldom() {
    let (mut bytes, mut moves) = (Vec::<u8>::new(), 0);
    while bytes.len() < 30 << 20 {
        let (before, more) = (bytes.as_ptr(), bytes.len() / 8 + 1000);
        bytes.reserve_exact(more);
        moves += u32::from(bytes.as_ptr() != before);
        let next = (0..more).map(|i| ((bytes.len() + i) % 251) as u8);
        bytes.extend(next.collect::<Vec<_>>());
    }
    assert!(moves < 20, "{moves}");
    bytes.truncate(1 << 20);
    let before = bytes.as_ptr();
    bytes.shrink_to_fit();
    assert_eq!((bytes.as_ptr(), bytes.capacity()), (before, 1 << 20));
    assert!((0..bytes.len()).all(|i| bytes[i] == (i % 251) as u8));
}
