//! `--pid` of a program whose file another program serves, and then does not: a filesystem of its
//! own, as any user can mount one.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

#[path = "support/fuse.rs"]
mod fuse;

use fuse::Served;
use support::skip;
use support::target::{self, Target};
use support::watched::{COMMANDS, watched};

#[test]
fn target() {
    target::main();
}

#[test]
fn a_file_that_nobody_serves_any_more_holds_no_command_up() {
    let own = std::env::current_exe().unwrap();
    let served = match Served::mount(&own) {
        Ok(served) => served,
        Err(error) => return skip(&format!("needs to mount a filesystem: {error}")),
    };
    let target = Target::start_from(&served.path(), &["debug=U", "objects=300"]);
    let pid = target.pid();
    let sites = ["sites", "--by", "stack"];
    let before = watched(&sites, &pid);
    // The file's filesystem is the program's own: nothing of it is asked, so no names.
    assert!(before.stdout.contains("program+0x"), "{}", before.stdout);
    served.fall_silent();
    for args in COMMANDS {
        let run = watched(args, &pid);
        assert!(
            run.code == Some(0) || args[0] == "show",
            "{args:?}: {}",
            run.stderr
        );
    }
    let silent = watched(&sites, &pid);
    assert!(silent.stdout.contains("program+0x"), "{}", silent.stdout);
    assert_eq!(
        served.unanswered(),
        0,
        "nothing was asked of its filesystem"
    );
}
