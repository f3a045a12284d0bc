//! What a reader of the text sees.

use collectors::model::{Frame, Part};

use super::*;

pub(crate) fn sample() -> Dump {
    let track = |symbol: Option<&str>| DumpTrack {
        thread: 7,
        cpu: 1,
        age_ms: 1500,
        stack: vec![
            Frame {
                address: 0x1234,
                symbol: symbol.map(str::to_owned),
            },
            Frame {
                address: 0x5678,
                symbol: None,
            },
        ],
    };
    let object = |place| DumpObject {
        place,
        requested: None,
        allocated: None,
        freed: None,
    };
    let mut objects: Vec<_> = Place::KINDS.into_iter().map(object).collect();
    objects[0].requested = Some(20);
    objects[0].allocated = Some(track(Some("demo+0x1f")));
    objects[1].freed = Some(track(None));
    objects.resize(70, object(Place::Own(3)));
    let mut bytes = vec![0x6b; 4096];
    bytes[..8].fill(0xcc);
    bytes[8..28].copy_from_slice(b"the quick brown fox!");
    let slab = DumpSlab {
        address: 0x7000_0000,
        order: 0,
        node: 1,
        inuse: 68,
        holder: Holder::InHand(3),
        listed: Some(2),
        queued: true,
        settled: false,
        objects,
        chain: vec![1, 2],
        own: (3..40).collect(),
        bytes: Some(bytes),
    };
    let cache = DumpCache {
        name: "demo_handle".into(),
        policy: None,
        debug: "FZPU".into(),
        object_size: 24,
        slab_size: 48,
        object_offset: 8,
        objs_per_slab: 70,
        parts: vec![
            Part {
                name: "left red zone",
                range: 0..8,
            },
            Part {
                name: "object",
                range: 8..32,
            },
        ],
        slabs_total: 3,
        places: [1, 1, 1, 62, 1, 1, 1, 1, 1],
        counted: Some(2),
        limited: false,
        exact: false,
        slabs: vec![slab],
    };
    let plain = DumpCache {
        name: "a\u{1b}[2J".into(),
        policy: Some("sheaves"),
        slabs: Vec::new(),
        slabs_total: 0,
        places: [0; 9],
        limited: false,
        exact: true,
        ..cache.clone()
    };
    Dump {
        caches: vec![cache, plain],
        cut: 2,
        limited: false,
    }
}

fn shown(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_map_has_a_legend_and_lists_are_in_order() {
    let text = shown(|out| write(&sample(), out));
    insta::assert_snapshot!("dump_map", text);
}

#[test]
fn an_object_is_shown_with_who_had_it_and_its_parts() {
    let dump = sample();
    let cache = &dump.caches[0];
    let text = shown(|out| write_object(cache, &cache.slabs[0], 0, out));
    insta::assert_snapshot!("dump_object", text);
    let beyond = shown(|out| write_object(cache, &cache.slabs[0], 700, out));
    assert_eq!(beyond, "");
}

#[test]
fn rows_are_exact_and_what_is_not_kept_is_empty() {
    let dump = sample();
    let mut csv = Vec::new();
    objects(&dump).write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 71);
    insta::assert_snapshot!("dump_rows", lines[..5].join("\n"));
    let mut csv = Vec::new();
    slabs(&dump).write_csv(&mut csv).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap().lines().count(), 2);
}
