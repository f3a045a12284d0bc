//! Records as the programs write them, and as they must not.

use super::*;

fn head(kind: usize, words: usize) -> u64 {
    kind as u64 | (words as u64) << 32
}

/// A record with these words, all of them known.
fn record(kind: usize, length: usize, words: &[(usize, u64)]) -> Vec<u64> {
    let mut record = vec![0; length];
    record[0] = head(kind, length);
    for (n, value) in words {
        record[*n] = *value;
        record[CACHE_KNOWN] |= 1 << n;
    }
    record
}

/// A cache of 100 slabs with 10 objects each, 20 of them on lists with 150 in
/// use, and two with processors.
fn cache(more: &[(usize, u64)]) -> Vec<u64> {
    let mut words = vec![
        (CACHE_SLAB_SIZE, 400),
        (CACHE_ORDER_OBJECTS, 10),
        (CACHE_PARTIAL, 20),
        (CACHE_SLABS, 100),
        (CACHE_TOTAL_OBJECTS, 1000),
        (CACHE_WALKED, 20),
        (CACHE_WALKED_OBJECTS, 200),
        (CACHE_WALKED_INUSE, 150),
        (CACHE_CPU_SLABS, 1),
        (CACHE_CPU_FREE, 6),
        (CACHE_CPU_PARTIAL_SLABS, 1),
        (CACHE_CPU_PARTIAL_FREE, 4),
        (CACHE_OCCUPANCY + 8, 20),
        (CACHE_CPU_OCCUPANCY + 11, 1),
        (CACHE_CPU_OCCUPANCY + 7, 1),
    ];
    words.extend(more);
    let mut record = record(RECORD_CACHE, CACHE_WORDS, &words);
    record[CACHE_NAME] = u64::from_ne_bytes(*b"dentry\0\0");
    record
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn one(words: &[u64]) -> Cache {
    let (seen, whole) = parse(&bytes(words));
    assert!(whole);
    assert_eq!(seen.len(), 1);
    seen.into_iter().next().unwrap().cache
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = include_str!("../../../../bpf/snapshot.h");
    let mut values = std::collections::BTreeMap::new();
    // An enumerator a line; one without a value is one more than the last.
    let mut last = None;
    for line in header.lines() {
        for part in line.split(['{', ',']) {
            let part = part.split("/*").next().unwrap_or("").trim();
            let part = part.trim_end_matches(['}', ';', ' ']);
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (part, None),
            };
            let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
            if part.starts_with("enum") {
                last = None;
            }
            if name.len() < 4 || !name.chars().all(is_name) {
                continue;
            }
            let value = match value {
                Some(value) => value
                    .split('+')
                    .map(|term| {
                        let term = term.trim();
                        term.parse().unwrap_or_else(|_| values[term])
                    })
                    .sum(),
                None => last.map_or(0, |last: usize| last + 1),
            };
            values.insert(name, value);
            last = Some(value);
        }
    }
    for (name, value) in NUMBERS {
        assert_eq!(values.get(name), Some(value), "{name}");
    }
}

#[test]
fn objects_in_use_are_those_that_are_free_nowhere() {
    let cache = one(&cache(&[]));
    assert_eq!(&*cache.name, "dentry");
    let get = |q| cache.get(q).unwrap();
    assert_eq!(get(Quantity::Parked), Approx::exact(10));
    assert_eq!(get(Quantity::Objects), Approx::exact(1000 - 50 - 10));
    assert_eq!(get(Quantity::ObjectsPartial), Approx::exact(150));
    assert_eq!(get(Quantity::CpuSlabs), Approx::exact(2));
    let occupancy = cache.occupancy.unwrap();
    assert_eq!(occupancy.value.0, [0, 0, 0, 0, 0, 0, 0, 1, 20, 0, 0, 79]);
    assert!(!occupancy.approx);
}

#[test]
fn what_the_kernel_has_not_is_unknown_and_never_zero() {
    let mut words = record(RECORD_CACHE, CACHE_WORDS, &[(CACHE_SLAB_SIZE, 64)]);
    words[CACHE_NAME] = u64::from_ne_bytes(*b"kmalloc\0");
    let cache = one(&words);
    let known: Vec<_> = cache.known().iter().collect();
    assert_eq!(known, [Quantity::SlabSize]);
    assert!(cache.occupancy.is_none());
}

#[test]
fn in_use_is_unknown_while_a_place_of_free_objects_is() {
    // Sheaves that are used, and of which not all could be read.
    let sheaves = [
        (CACHE_SHEAF_CAPACITY, 60),
        (CACHE_SHEAF_OBJECTS, 30),
        (CACHE_RCU_OBJECTS, 2),
    ];
    let partly = one(&cache(&sheaves));
    assert_eq!(partly.get(Quantity::Objects), None);
    assert_eq!(partly.get(Quantity::Parked), None);
    let mut all = sheaves.to_vec();
    all.push((CACHE_BARN_OBJECTS, 100));
    let whole = one(&cache(&all));
    assert_eq!(whole.get(Quantity::Parked), Some(Approx::exact(142)));
    assert_eq!(whole.get(Quantity::Objects), Some(Approx::exact(808)));
}

#[test]
fn what_moved_is_marked_and_what_was_cut_is_drawn_out() {
    let mut moved = cache(&[]);
    moved[CACHE_MOVED] = MOVED_CPU as u64;
    let moved = one(&moved);
    assert!(moved.get(Quantity::Objects).unwrap().approx);
    assert!(moved.get(Quantity::Parked).unwrap().approx);
    assert!(!moved.get(Quantity::ObjectsPartial).unwrap().approx);
    assert!(moved.occupancy.unwrap().approx);

    // A slab or a sheaf may have been counted in two places, or in none.
    let mut between = cache(&[]);
    between[CACHE_MOVED] = MOVED_BETWEEN as u64;
    let between = one(&between);
    for twice in [Quantity::Objects, Quantity::Parked] {
        assert!(between.get(twice).unwrap().approx, "{}", twice.name());
    }
    assert!(!between.get(Quantity::ObjectsPartial).unwrap().approx);

    // Twenty of forty were looked at.
    let mut cut = cache(&[(CACHE_PARTIAL, 40)]);
    cut[CACHE_MOVED] = MOVED_CUT as u64;
    let cut = one(&cut);
    let partial = cut.get(Quantity::ObjectsPartial).unwrap();
    assert_eq!(partial, Approx::estimate(300));
    let objects = cut.get(Quantity::Objects).unwrap();
    assert_eq!(objects, Approx::estimate(1000 - 100 - 10));
    assert_eq!(cut.occupancy.unwrap().value.0[8], 40);
}

#[test]
fn more_free_objects_than_room_are_an_estimate_of_none() {
    let cache = one(&cache(&[(CACHE_CPU_FREE, 5000)]));
    assert_eq!(cache.get(Quantity::Objects), Some(Approx::estimate(0)));
}

#[test]
fn parts_belong_to_the_cache_that_follows() {
    let mut words = record(
        RECORD_NODE,
        NODE_WORDS,
        &[
            (NODE_NUMBER, 1),
            (NODE_SLABS, 7),
            (NODE_PARTIAL, 3),
            (NODE_WALKED, 3),
            (NODE_WALKED_INUSE, 9),
        ],
    );
    words.extend(record(
        RECORD_CPU,
        CPU_WORDS,
        &[(CPU_NUMBER, 5), (CPU_SHEAF_MAIN, 12)],
    ));
    words.extend(cache(&[]));
    words.extend(cache(&[]));
    let (seen, whole) = parse(&bytes(&words));
    assert!(whole);
    assert_eq!(seen.len(), 2);
    let (node, cpu) = (&seen[0].cache.nodes[0], &seen[0].cache.cpus[0]);
    assert_eq!((node.node, node.slabs), (NodeId(1), Some(Slabs(7))));
    assert_eq!(node.objects_partial, Some(Objects(9)));
    assert_eq!((cpu.cpu, cpu.sheaf_main), (CpuId(5), Some(Objects(12))));
    assert_eq!(cpu.objects_cpu_slab, None);
    assert!(seen[1].cache.nodes.is_empty() && seen[1].cache.cpus.is_empty());
}

#[test]
fn broken_streams_end_the_reading_and_nothing_else() {
    let whole = bytes(&[cache(&[]), cache(&[])].concat());
    for length in 0..whole.len() {
        let (seen, all) = parse(&whole[..length]);
        assert!(seen.len() <= 1, "{length}");
        // Nobody can see that a stream ends between two caches.
        assert_eq!(all, length % (CACHE_WORDS * 8) == 0, "{length}");
    }
    for word in [0, u64::MAX, head(RECORD_CACHE, 1), head(9, CACHE_WORDS)] {
        let mut words = cache(&[]);
        words.extend(cache(&[]));
        words[CACHE_WORDS] = word;
        let (seen, all) = parse(&bytes(&words));
        assert_eq!((seen.len(), all), (1, false));
    }
    // Parts without their cache are of none.
    let mut words = cache(&[]);
    words.extend(record(RECORD_CPU, CPU_WORDS, &[(CPU_NUMBER, 0)]));
    let (seen, all) = parse(&bytes(&words));
    assert_eq!((seen.len(), all), (1, false));
    assert!(seen[0].cache.cpus.is_empty());
    // Whatever the words are, figures come out of them without a panic.
    let mut words = vec![u64::MAX; CACHE_WORDS];
    words[0] = head(RECORD_CACHE, CACHE_WORDS);
    assert_eq!(parse(&bytes(&words)).0.len(), 1);
}

#[test]
fn a_list_of_which_nothing_was_looked_at_tells_nothing() {
    let nothing = [
        (CACHE_WALKED, 0),
        (CACHE_WALKED_OBJECTS, 0),
        (CACHE_WALKED_INUSE, 0),
    ];
    let mut cut = cache(&nothing);
    cut[CACHE_MOVED] = MOVED_CUT as u64;
    let cut = one(&cut);
    assert_eq!(cut.get(Quantity::ObjectsPartial), None);
    assert_eq!(cut.get(Quantity::Objects), None);
    assert!(cut.occupancy.is_none());
    assert_eq!(cut.get(Quantity::Partial), Some(Approx::exact(20)));
}

#[test]
fn what_could_not_be_read_of_one_part_is_not_known_of_the_whole() {
    // The programs take back what only some processors told.
    let unread = [
        CACHE_CPU_SLABS,
        CACHE_CPU_FREE,
        CACHE_CPU_PARTIAL_SLABS,
        CACHE_CPU_PARTIAL_FREE,
    ];
    let mut words = cache(&[]);
    for word in unread {
        words[CACHE_KNOWN] &= !(1 << word);
    }
    words[CACHE_MOVED] = MOVED_UNREAD as u64;
    let cache = one(&words);
    for unknown in [Quantity::Objects, Quantity::Parked, Quantity::CpuSlabs] {
        assert_eq!(cache.get(unknown), None, "{}", unknown.name());
    }
    assert_eq!(cache.get(Quantity::Slabs), Some(Approx::exact(100)));
    assert!(cache.occupancy.unwrap().approx);
}

#[test]
fn a_count_below_zero_is_none() {
    let cache = one(&cache(&[
        (CACHE_SLABS, u64::MAX),
        (CACHE_TOTAL_OBJECTS, u64::MAX - 5),
    ]));
    for unknown in [Quantity::Slabs, Quantity::TotalObjects, Quantity::Objects] {
        assert_eq!(cache.get(unknown), None, "{}", unknown.name());
    }
    assert!(cache.occupancy.is_none());
}
