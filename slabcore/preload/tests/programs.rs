//! Small C programs with the library: what C promises, at any time of a program's life.

mod support;

use std::process::Command;
use support::{FULL, POLICIES, is_there, program, quiet, run};

/// Runs with each policy, without and with debugging.
fn each(mut test: impl FnMut(&[(&str, &str)])) {
    for policy in POLICIES {
        test(&[("SLABCORE_POLICY", policy)]);
    }
    test(&[FULL]);
    test(&[("SLABCORE_POLICY", "cpu-partial"), FULL]);
}

#[test]
fn every_function_does_what_c_says() {
    each(|variables| assert_eq!(quiet("semantics", &[], variables), "all right\n"));
    for variables in [
        [("SLABCORE_SAMPLE", "7")],
        [("SLABCORE_HARDEN", "1")],
        [("SLABCORE_RANDOMISE", "1")],
        [("SLABCORE_DECOMMIT", "now")],
        [("SLABCORE_NODES", "3")],
        [("SLABCORE_DEBUG", "F")],
        [("SLABCORE_DEBUG", "FZPU,kmalloc-64;P,kmalloc-1*")],
    ] {
        assert_eq!(quiet("semantics", &[], &variables), "all right\n");
    }
}

#[test]
fn it_works_before_main_behind_it_and_in_libraries_that_come_and_go() {
    let plugin = program("plugin");
    each(|variables| {
        let debugged = variables.contains(&FULL);
        let ran = run(Command::new(program("early")).arg(&plugin), variables);
        assert!(ran.status.success(), "{variables:?} {ran:?}");
        assert_eq!(ran.out, "main\natexit\ndestructor\n");
        // Debugging reports the foreign pointers; nothing else is wrong.
        let reports = ran.err.matches("BUG ").count();
        let foreign = ran.err.matches("No slab cache for object").count();
        assert_eq!(reports, foreign, "{}", ran.err);
        assert_eq!(foreign > 0, debugged, "{}", ran.err);
    });
}

#[test]
fn a_thousand_threads_pass_objects_on() {
    each(|variables| {
        let debugged = variables.contains(&FULL);
        let many = variables.contains(&("SLABCORE_POLICY", "hybrid"));
        let threads = match (debugged, many) {
            (true, _) => "30",
            (false, true) => "1000",
            (false, false) => "100",
        };
        assert_eq!(quiet("threads", &[threads], variables), "all right\n");
    });
    assert_eq!(
        quiet("threads", &["100"], &[("SLABCORE_SAMPLE", "10")]),
        "all right\n"
    );
}

/// More threads at a time than there are slots: some share one.
#[test]
fn there_may_be_more_threads_than_slots() {
    assert_eq!(quiet("threads", &["2100", "2100"], &[]), "all right\n");
}

/// Without addresses for a heap that is said, and allocations fail as C says.
#[test]
fn too_few_addresses_are_told() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -v 40000; exec \"$0\" none"]);
    let ran = run(command.arg(program("exhausted")), &[]);
    assert_eq!(ran.out, "all right\n", "{ran:?}");
    let line = "slabcore: the system refuses addresses for a heap";
    assert_eq!(ran.err.matches(line).count(), 1, "{ran:?}");
    let ran = run(Command::new(program("exhausted")).arg("some"), &[]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("all right\n", ""));
}

#[test]
fn cpp_allocates_and_throws() {
    if !is_there("c++") {
        return;
    }
    for variables in [&[][..], &[FULL]] {
        assert_eq!(quiet("operators", &[], variables), "all right\n");
    }
}

#[test]
fn stacks_with_code_made_at_run_time_can_be_walked() {
    for variables in [&[][..], &[FULL]] {
        assert_eq!(quiet("frames", &[], variables), "all right\n");
    }
}

#[test]
fn children_of_threads_that_allocate_can_use_the_heap() {
    each(|variables| {
        let debugged = variables.contains(&FULL);
        let forks = if debugged { "3" } else { "8" };
        assert_eq!(quiet("forks", &[forks], variables), "all right\n");
    });
}

#[test]
fn a_program_can_become_another_often() {
    assert_eq!(quiet("exec", &["60"], &[]), "all right\n");
    assert_eq!(quiet("exec", &["15"], &[FULL]), "all right\n");
}
