//! A panic gives the terminal back and is readable, on whichever thread.
//!
//! The test runs itself in a pseudo-terminal, where a source or a host panics.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use collectors::model::Snapshot;
use collectors::source::{Demand, Source};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tui::host::{Export, Host};
use tui::model::{List, Settings};
use tui::msg::Change;
use tui::run::Options;

/// Set in the run that panics; says where.
const WHERE: &str = "SLABCTL_TEST_PANIC";

/// Panics, or waits for ever.
struct Broken(bool);

impl Source for Broken {
    fn describe(&self) -> String {
        "a broken source".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn sample(&mut self, _: &Demand) -> Result<Snapshot, collectors::Error> {
        // After the terminal was taken over.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!self.0, "the source broke");
        std::thread::sleep(Duration::from_secs(600));
        Err(collectors::Error::Filter("late".to_owned()))
    }
}

struct Nobody;

impl Host for Nobody {
    fn export(&mut self, _: &Export) -> Result<String, String> {
        Err("nobody".to_owned())
    }

    fn picture(&mut self, _: &Path, _: &str) -> Result<String, String> {
        Err("nobody".to_owned())
    }

    fn snapshot(&mut self, _: &Path) -> Result<String, String> {
        panic!("the host broke");
    }

    fn change(&mut self, _: Change, _: &str) -> Result<String, String> {
        Err("nobody".to_owned())
    }
}

/// What the run in the pseudo-terminal does; nothing in any other.
#[test]
fn inside() {
    let Ok(place) = std::env::var(WHERE) else {
        return;
    };
    let options = Options {
        settings: Settings {
            can_capture: true,
            ..Settings::default()
        },
        list: List::default(),
        screen: 0,
        alternate: true,
    };
    let breaks = place == "source";
    let open =
        move || -> Result<Box<dyn Source>, tui::run::SourceError> { Ok(Box::new(Broken(breaks))) };
    let end = tui::run::run(options, Box::new(open), Box::new(Nobody));
    panic!("it did not panic: {end:?}");
}

fn run_inside(place: &str, keys: &str) -> (vt100::Parser, u32) {
    let pty = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "inside", "--nocapture"]);
    command.env(WHERE, place);
    command.env("TERM", "xterm-256color");
    command.env("RUST_BACKTRACE", "0");
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut parser = vt100::Parser::default();
    let mut output = pty.master.try_clone_reader().unwrap();
    let mut writer = pty.master.take_writer().unwrap();
    let mut typed = keys.is_empty();
    let (mut buffer, end) = ([0; 4096], Instant::now() + Duration::from_secs(60));
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        assert!(Instant::now() < end, "{}", parser.screen().contents());
        parser.process(&buffer[..count]);
        if !typed && parser.screen().contents().contains("reading") {
            writer.write_all(keys.as_bytes()).unwrap();
            typed = true;
        }
    }
    (parser, child.wait().unwrap().exit_code())
}

#[test]
fn the_terminal_is_given_back_and_the_message_is_there_to_read() {
    for (place, keys, says) in [
        ("source", "", "the source broke"),
        ("host", "wx.tar\r", "the host broke"),
    ] {
        let (parser, code) = run_inside(place, keys);
        let screen = parser.screen();
        assert_ne!(code, 0);
        assert!(screen.contents().contains(says), "{}", screen.contents());
        assert!(
            !screen.alternate_screen() && !screen.hide_cursor(),
            "{place}"
        );
        assert!(!screen.bracketed_paste(), "{place}");
    }
}
