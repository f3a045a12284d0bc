//! Reports as people sent them: the answer a person finds by careful reading.
//! Sources: public threads whose outcome is known; see `data/log/README.md`.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use collectors::analysis::explain::finding::{Confidence, Operation, Part, State};
use collectors::analysis::explain::{Class, Explanation, Finding, Kind, explain};
use collectors::parse::kernel_log;
use collectors::parse::kernel_log::report::Tool;

macro_rules! log {
    ($name:literal) => {
        read(include_bytes!(concat!("data/", $name)))
    };
}

fn read(text: &[u8]) -> Explanation {
    explain(&kernel_log::parse(text))
}

fn only(found: &Explanation) -> &Finding {
    assert_eq!(found.findings.len(), 1, "{found:#?}");
    &found.findings[0]
}

fn cache(finding: &Finding) -> &str {
    &finding.cache.as_ref().unwrap().name
}

/// Offset in the object, length, found and expected bytes.
fn damage(finding: &Finding) -> (Part, i64, u64, &[u8], u8) {
    let damage = finding.damage().unwrap();
    (
        damage.part,
        damage.offset_in_object.unwrap(),
        damage.len.unwrap(),
        &damage.found,
        damage.expected.unwrap(),
    )
}

fn symbol(track: Option<&kernel_log::report::Track>) -> &str {
    track.map_or("", |track| &track.symbol)
}

fn says(finding: &Finding, confidence: Confidence, part: &str) {
    let found = finding
        .conclusions
        .iter()
        .any(|c| c.confidence == confidence && c.text.contains(part));
    assert!(found, "{part}: {:#?}", finding.conclusions);
}

#[test]
fn one_bit_twice_at_one_address_is_bad_memory() {
    let found = log!("log/slab-bit-flip.txt");
    let finding = only(&found);
    assert_eq!((finding.class, finding.repeats), (Class::BitFlip, 2));
    assert_eq!(damage(finding), (Part::Poison, 3, 1, &[0x2b][..], 0x6b));
    assert_eq!(finding.damage().unwrap().flipped_bit, Some((6, false)));
    let object = finding.object.as_ref().unwrap();
    assert_eq!(object.address, Some(0xffff_8100_0d0f_fb30));
    assert_eq!((object.size, object.state), (Some(104), Some(State::Free)));
    assert_eq!(
        symbol(finding.freed.as_ref()),
        "end_bio_bh_io_sync+0x35/0x39"
    );
    says(finding, Confidence::Likely, "same address");
    says(finding, Confidence::Certain, "nothing ran over");
    assert!(finding.next[0].contains("Test the memory"));
    // The last user is not accused.
    assert!(!finding.next.iter().any(|n| n.contains("end_bio")));
}

#[test]
fn a_string_was_one_byte_too_long() {
    let found = log!("log/slab-off-by-one-wrapped.txt");
    let finding = only(&found);
    // The second report is cut off before its red zones, and is not another bug.
    assert_eq!((finding.class, finding.repeats), (Class::Overflow, 2));
    assert_eq!(cache(finding), "size-32");
    assert_eq!(damage(finding), (Part::RightRedzone, 32, 1, &[0][..], 0xa5));
    assert_eq!(finding.operation, Some(Operation::Free));
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("ioctl_standard_call+0x187/0x2a1")
    );
    says(finding, Confidence::Likely, "off by one");
    says(finding, Confidence::Certain, "before the object is whole");
}

#[test]
fn a_device_wrote_a_word_into_two_bytes() {
    let found = log!("log/slub-6.6-kmalloc-redzone-arm.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::Overflow, "kmalloc-64")
    );
    assert_eq!(
        damage(finding),
        (Part::KmallocRedzone, 2, 2, &[0, 0][..], 0xcc)
    );
    let object = finding.object.as_ref().unwrap();
    assert_eq!((object.requested, object.size), (Some(2), Some(64)));
    assert_eq!(object.offset_in_slab, Some(3328));
    let slab = finding.slab.as_ref().unwrap();
    assert_eq!((slab.objects, slab.used), (Some(21), Some(18)));
    let allocated = finding.allocated.as_ref().unwrap();
    assert_eq!(allocated.symbol, "usb_get_status+0x2b/0xac");
    assert_eq!(
        (allocated.pid, allocated.cpu, allocated.age),
        (Some(41), Some(3), Some(1))
    );
    assert!(finding.freed.is_none());
    assert_eq!(finding.operation, Some(Operation::Free));
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("usb_get_status+0x73/0xac")
    );
    says(finding, Confidence::Possible, "whole words");
    // An earlier report is not in the mail.
    assert_eq!(found.notes.len(), 1);
}

#[test]
fn a_freed_queue_was_taken_off_a_list() {
    let found = log!("log/slab-5.3-list-entry-wrapped.txt");
    let [first, second] = &found.findings[..] else {
        panic!("{found:#?}");
    };
    for finding in [first, second] {
        assert_eq!((finding.class, finding.repeats), (Class::UseAfterFree, 2));
        assert_eq!((finding.kind, cache(finding)), (Kind::Slab, "bfq_queue"));
        assert_eq!(finding.object.as_ref().unwrap().size, Some(512));
        assert_eq!(symbol(finding.freed.as_ref()), "bfq_put_queue+0xb0/0xe0");
        says(finding, Confidence::Likely, "unlinking of a list entry");
        says(finding, Confidence::Certain, "nothing ran over");
        says(finding, Confidence::Certain, "not damaged");
    }
    let pointer = 0xffff_8881_9344_e518_u64.to_le_bytes();
    assert_eq!(damage(first), (Part::Poison, 0x1f0, 8, &pointer[..], 0x6b));
    // Up to the last byte, which is not 0xa5 any more.
    assert_eq!(damage(second), (Part::Poison, 0x1f8, 8, &[0; 8][..], 0x6b));
}

#[test]
fn a_wrong_count_after_a_double_free_is_no_second_bug() {
    let found = log!("log/slub-5.9-double-free-ppc64-quoted.txt");
    assert_eq!(found.findings.len(), 2);
    let first = &found.findings[0];
    assert_eq!(
        (first.class, cache(first)),
        (Class::DoubleFree, "kmalloc-16")
    );
    assert_eq!(first.object.as_ref().unwrap().offset_in_slab, Some(5168));
    let slab = first.slab.as_ref().unwrap();
    assert_eq!((slab.objects, slab.used), (Some(178), Some(174)));
    let allocated = first.allocated.as_ref().unwrap();
    assert_eq!(allocated.symbol, "pcibios_scan_phb+0x104/0x3e0");
    assert_eq!(
        (allocated.pid, allocated.cpu, allocated.age),
        (Some(1), Some(4), Some(356_904))
    );
    let freed = first.freed.as_ref().unwrap();
    assert_eq!(freed.symbol, "pcibios_remove_bus+0x70/0x90");
    assert_eq!(
        (freed.pid, freed.cpu, freed.age),
        (Some(151_472), Some(7), Some(0))
    );
    assert!(!first.freed_before);
    assert_eq!(
        first.detected_by.as_deref(),
        Some("pcibios_remove_bus+0x70/0x90")
    );
    assert_eq!(first.detected.comm.as_deref(), Some("trinity-c61"));
    says(
        first,
        Confidence::Certain,
        "the second comes from the same function",
    );
    says(
        first,
        Confidence::Certain,
        "Nothing was written to the object",
    );
    let second = &found.findings[1];
    assert_eq!(
        (second.class, second.consequence_of),
        (Class::Counters, Some(0))
    );
    assert!(second.headline.contains("174") && second.headline.contains("176"));
}

#[test]
fn two_caches_may_have_one_name() {
    let found = log!("log/wrong-cache-of-one-name.txt");
    let finding = only(&found);
    assert_eq!((finding.class, cache(finding)), (Class::WrongCache, "SMC"));
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("__sk_destruct+0x12c/0x1e0")
    );
    assert_eq!(finding.detected.pid, Some(176_961));
    assert_eq!(finding.detected.comm.as_deref(), Some("redis-server"));
    says(finding, Confidence::Certain, "by address, not by name");
    says(finding, Confidence::Likely, "by force");
    says(finding, Confidence::Certain, "taint B");
}

#[test]
fn one_mmdrop_too_many() {
    let found = log!("log/slub-5.9-refcount-ppc64-addr2line.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::UseAfterFree, "mm_struct")
    );
    assert_eq!(damage(finding), (Part::Poison, 80, 1, &[0x6a][..], 0x6b));
    assert_eq!(finding.damage().unwrap().offset_in_slab, Some(96464));
    assert_eq!(finding.object.as_ref().unwrap().offset_in_slab, Some(96384));
    // Most of the object was left out of the mail.
    assert_eq!(finding.object.as_ref().unwrap().size, None);
    let (allocated, freed) = (
        finding.allocated.as_ref().unwrap(),
        finding.freed.as_ref().unwrap(),
    );
    assert_eq!(
        (&*allocated.symbol, allocated.pid),
        ("dup_mm+0x48/0x6d0", Some(191_552))
    );
    assert_eq!((allocated.cpu, allocated.age), (Some(108), Some(955)));
    assert_eq!(
        (&*freed.symbol, freed.pid),
        ("__mmdrop+0x144/0x250", Some(882_503))
    );
    assert_eq!((freed.cpu, freed.age), (Some(69), Some(942)));
    assert_eq!(
        allocated.stack.frames.len(),
        8,
        "addr2line's lines are not frames"
    );
    says(finding, Confidence::Likely, "decremented");
    says(finding, Confidence::Possible, "Bad memory");
}

#[test]
fn a_page_table_was_freed_twice_and_the_log_is_cut() {
    let found = log!("log/slub-5.17-double-free-padded.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::DoubleFree, "pgtable-2^11")
    );
    let object = finding.object.as_ref().unwrap();
    assert_eq!(object.offset_in_slab, Some(163_840));
    assert_eq!(object.address, Some(0xc000_0000_035a_8000));
    let slab = finding.slab.as_ref().unwrap();
    assert_eq!((slab.objects, slab.used), (Some(10), Some(9)));
    assert_eq!(slab.free_pointer, object.address);
    assert_eq!(symbol(finding.allocated.as_ref()), "__pud_alloc+0x84/0x2a0");
    assert_eq!(
        symbol(finding.freed.as_ref()),
        "__tlb_remove_table+0x1d4/0x200"
    );
    assert_eq!(finding.freed.as_ref().unwrap().age, Some(263));
    assert!(
        finding
            .unknown
            .iter()
            .any(|u| u.contains("stack is missing"))
    );
    assert_eq!(finding.stamp.as_deref(), Some("47.637907"));
}

#[test]
fn a_swap_map_was_four_bytes_too_short() {
    let found = log!("log/slub-5.10-overflow-quoted-deep.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::Overflow, "kmalloc-16")
    );
    // From the bytes: the addresses are hashed and their difference means nothing.
    assert_eq!(
        damage(finding),
        (Part::RightRedzone, 16, 4, &[0, 0, 0, 0xc0][..], 0xcc)
    );
    assert_eq!(finding.damage().unwrap().offset_in_slab, Some(7392));
    assert_eq!(finding.object.as_ref().unwrap().state, Some(State::InUse));
    assert_eq!(finding.object.as_ref().unwrap().address, None);
    let allocated = finding.allocated.as_ref().unwrap();
    assert_eq!(allocated.symbol, "__do_sys_swapon+0xcf6/0x1170");
    assert_eq!(
        (allocated.pid, allocated.cpu, allocated.age),
        (Some(3816), Some(9), Some(43_417))
    );
    assert_eq!(symbol(finding.freed.as_ref()), "put_cred_rcu+0xa1/0xc0");
    assert!(finding.freed_before);
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("__x64_sys_swapoff+0x39a/0x540")
    );
    assert_eq!(finding.detected.pid, Some(3816));
    says(finding, Confidence::Certain, "first one behind the object");
    says(finding, Confidence::Possible, "0xc0000000");
}

#[test]
fn a_control_group_ran_into_its_limit() {
    let found = log!("log/failure-memcg.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.kind, finding.class),
        (Kind::AllocationFailure, Class::Shortage)
    );
    let name = finding.cache.as_ref().unwrap();
    assert_eq!(name.name, "tw_sock_TCPv6(960:helper-logs)");
    assert_eq!(name.root, "tw_sock_TCPv6");
    assert_eq!(name.cgroup, Some((960, "helper-logs".to_owned())));
    assert_eq!(finding.reason.as_deref(), Some("0xa20(GFP_ATOMIC)"));
    assert_eq!(finding.detected_by.as_deref(), Some("inet_twsk_alloc+60"));
    says(finding, Confidence::Likely, "limit of the control group");
    says(finding, Confidence::Certain, "only 40.0K");
    assert!(!finding.next.iter().any(|n| n.contains("min_free_kbytes")));
}

#[test]
fn a_node_ran_dry_while_another_had_free_objects() {
    let found = log!("log/failure-two-nodes.txt");
    let [orphans, finding] = &found.findings[..] else {
        panic!("{found:#?}");
    };
    assert_eq!((orphans.cache.as_ref(), orphans.nodes.len()), (None, 3));
    assert_eq!((cache(finding), finding.repeats), ("skbuff_head_cache", 2));
    assert_eq!(finding.nodes.len(), 2);
    says(
        finding,
        Confidence::Certain,
        "hold 49.6 on average: as if 257 of them were of order 0",
    );
    says(finding, Confidence::Likely, "only by chance");
    says(finding, Confidence::Certain, "could not wait");
}

#[test]
fn a_machine_out_of_memory_acquits_slab() {
    let found = log!("text/oom-nas-nfsd.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.kind, finding.class),
        (Kind::OomSlabTable, Class::NotSlab)
    );
    assert!(finding.headline.contains("6.9 %"), "{}", finding.headline);
    says(finding, Confidence::Likely, "in no counter");
    says(finding, Confidence::Certain, "49 caches, 13.6M");
    assert!(!found.accuses());
}

#[test]
fn extent_maps_grew_without_a_limit() {
    let found = log!("text/oom-and-slabtop-btrfs.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::Growth, "btrfs_extent_map")
    );
    says(finding, Confidence::Certain, "95.0 %");
    says(finding, Confidence::Possible, "cannot tell");
    says(finding, Confidence::Certain, "only the trigger");
}

#[test]
fn a_module_left_an_object_behind() {
    let found = log!("log/remaining-5.2-wrapped.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::Leak, "rds_ib_incoming")
    );
    let reason = "Objects remaining in rds_ib_incoming on __kmem_cache_shutdown()";
    assert_eq!(finding.reason.as_deref(), Some(reason));
    let slab = finding.slab.as_ref().unwrap();
    assert_eq!((slab.objects, slab.used), (Some(32), Some(1)));
    assert_eq!(slab.flags.as_deref(), Some("0x17fffc000010200"));
    assert!(finding.headline.contains("1 object left"));
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("rds_ib_recv_exit+0x11/0x20 [rds_rdma]")
    );
    assert_eq!(finding.detected.pid, Some(6643));
    assert!(finding.unknown.iter().any(|u| u.contains("not tracked")));
}

#[test]
fn an_inode_was_left_and_said_so_twice() {
    let found = log!("log/remaining-6.2-dates-wrapped.txt");
    assert_eq!(found.findings.len(), 2);
    let finding = &found.findings[0];
    assert_eq!(
        (finding.class, cache(finding)),
        (Class::Leak, "cifs_inode_cache")
    );
    let slab = finding.slab.as_ref().unwrap();
    let flags = "0x17ffffc0010200(slab|head|node=0|zone=2|lastcpupid=0x1fffff)";
    assert_eq!(
        (slab.objects, slab.used, slab.flags.as_deref()),
        (Some(17), Some(1), Some(flags))
    );
    assert_eq!(finding.object.as_ref().unwrap().offset_in_slab, Some(21120));
    assert_eq!(
        finding.detected_by.as_deref(),
        Some("exit_cifs+0x7e/0xc15 [cifs]")
    );
    assert_eq!(
        (finding.detected.pid, finding.detected.comm.as_deref()),
        (Some(9331), Some("rmmod"))
    );
    assert_eq!(
        finding.detected.kernel.as_deref(),
        Some("6.2.0-rc5withkasan")
    );
    assert!(
        finding.next[0].contains("slub_debug=U,cifs_inode_cache"),
        "{:?}",
        finding.next
    );
    assert_eq!(found.findings[1].consequence_of, Some(0));
}

#[test]
fn kasan_is_named_and_not_taken_for_the_allocator() {
    let found = log!("log/kasan-out-of-bounds.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.kind, finding.class),
        (Kind::Other(Tool::Kasan), Class::OtherTool)
    );
    assert_eq!(cache(finding), "kmalloc-1k");
    assert_eq!(finding.object.as_ref().unwrap().size, Some(1024));
    assert!(finding.headline.contains("hci_extended_inquiry_result_evt"));
    assert_eq!(finding.detected.pid, Some(6794));
    assert_eq!(finding.allocated.as_ref().unwrap().pid, Some(6797));
    assert!(finding.freed_before);
    says(finding, Confidence::Certain, "Read of 6 bytes");
    says(
        finding,
        Confidence::Certain,
        "4 bytes to the right of the object",
    );
}

#[test]
fn a_copy_to_user_space_was_far_too_long() {
    let found = log!("log/usercopy-container.txt");
    let finding = only(&found);
    assert_eq!(
        (finding.kind, finding.class),
        (Kind::Usercopy, Class::Usercopy)
    );
    let name = finding.cache.as_ref().unwrap();
    let (id, cgroup) = name.cgroup.as_ref().unwrap();
    assert_eq!(
        (&*name.root, *id, cgroup.len()),
        ("sock_inode_cache", 6899, 64)
    );
    assert_eq!(name.name.len(), 87);
    assert_eq!(finding.detected.comm.as_deref(), Some("torrent-client"));
    says(
        finding,
        Confidence::Certain,
        "began at byte 177 of the object and was 29007 bytes long",
    );
    says(finding, Confidence::Likely, "No slab object is that large");
}

#[test]
fn tables_and_lists_are_no_reports() {
    for text in [
        include_bytes!("data/text/alloc-calls-nfs-readdir.txt").as_slice(),
        include_bytes!("data/text/slabtop-coreos-ebitmap.txt"),
        include_bytes!("data/text/crash-kmem-question-marks.txt"),
        include_bytes!("data/text/sections-arm-4.1.txt"),
        include_bytes!("data/slabinfo/2.6.24-statistics-tabs.txt"),
        include_bytes!("data/slabinfo/4.18-coreos.txt"),
        include_bytes!("data/slabinfo/memcg-grep.txt"),
    ] {
        assert_eq!(read(text), Explanation::default());
    }
}

/// A part in brackets whose name is damaged, without a banner or with one that
/// refers to it, names nothing.
#[test]
fn a_part_that_is_not_known_is_said_to_be_unknown() {
    let line = |what: &str| {
        format!("[{what} overwritten] 0x10-0x11 @offset=8. First byte 0x1 instead of 0xcc\n")
    };
    let banner = "BUG x (Not tainted): Object corrupt\n";
    for what in ["Left Red?one", "Object corrupt", ""] {
        for banner in ["", banner] {
            let found = read(format!("{}{banner}", line(what)).as_bytes());
            assert!(
                found.findings.iter().all(|f| f.class == Class::CannotTell),
                "{what}"
            );
        }
    }
}
