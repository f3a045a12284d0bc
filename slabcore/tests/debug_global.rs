//! This test program runs on the engine with all debugging on.
#![cfg(not(loom))]
// Helpers of tests fail by panicking; a program that is to allocate may do so at leisure.
#![allow(clippy::unwrap_used, clippy::format_collect)]

use slabcore::{EngineConfig, SlabAlloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, Weak, mpsc};

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
    assert!(
        snapshot
            .caches
            .iter()
            .all(|cache| cache.debug.unwrap().faults == 0)
    );
}

/// A graph with links back, freed by whoever drops the last reference.
struct Node {
    name: String,
    parent: Mutex<Weak<Node>>,
    children: Mutex<Vec<Arc<Node>>>,
}

fn tree(depth: usize, name: &str) -> Arc<Node> {
    let node = Arc::new(Node {
        name: name.to_owned(),
        parent: Mutex::default(),
        children: Mutex::default(),
    });
    if depth > 0 {
        for i in 0..3 {
            let child = tree(depth - 1, &format!("{name}/{i}"));
            *child.parent.lock().unwrap() = Arc::downgrade(&node);
            node.children.lock().unwrap().push(child);
        }
    }
    node
}

/// Panics that unwind, thread-locals that free at exit, channels, shared graphs, hash maps
/// that grow, boxed closures, files and processes.
#[test]
fn what_programs_do_with_the_standard_library_has_no_findings() {
    thread_local!(static KEPT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });
    let (send, receive) = mpsc::channel::<Box<dyn FnOnce() -> usize + Send>>();
    let workers: Vec<_> = (0..3usize)
        .map(|worker| {
            let send = send.clone();
            let body = move || {
                KEPT.with_borrow_mut(|kept| kept.extend((0..50).map(|i| format!("{worker} {i}"))));
                let root = tree(4, "root");
                for round in 0..20 {
                    let mut map = HashMap::new();
                    let mut queue = VecDeque::from([root.clone()]);
                    while let Some(node) = queue.pop_front() {
                        queue.extend(node.children.lock().unwrap().iter().cloned());
                        let parent = node.parent.lock().unwrap().upgrade();
                        map.insert(node.name.clone(), parent.map(|it| it.name.len()));
                    }
                    assert_eq!(map.len(), 121);
                    send.send(Box::new(move || map.len() + round)).unwrap();
                }
                let unwound = std::panic::catch_unwind(|| {
                    let held = vec![vec![7u8; 3000]; 10];
                    std::panic::resume_unwind(Box::new(held.len()));
                });
                assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&10usize));
            };
            let builder = std::thread::Builder::new().name(format!("worker {worker}"));
            builder.spawn(body).unwrap()
        })
        .collect();
    drop(send);
    let sums: usize = receive.into_iter().map(|work| work()).sum();
    assert_eq!(sums, 3 * (0..20).map(|round| 121 + round).sum::<usize>());
    for worker in workers {
        worker.join().unwrap();
    }
    let mut child = std::process::Command::new("sort")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = (0..5000).rev().map(|i| format!("{i:05}\n")).collect();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let sorted: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert!(sorted.is_sorted() && sorted.len() == 5000 && child.wait().unwrap().success());
    assert_eq!(GLOBAL.engine().unwrap().validate().findings, []);
    let snapshot = GLOBAL.engine().unwrap().snapshot();
    assert!(
        snapshot
            .caches
            .iter()
            .all(|cache| cache.debug.unwrap().faults == 0)
    );
}
