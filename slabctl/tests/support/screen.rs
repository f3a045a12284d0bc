//! `slabctl top` on a pseudo-terminal.

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Longest wait for something to be seen: test machines can be busy.
const LONG: Duration = Duration::from_secs(60);

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// The program on a terminal, which remembers all that was written to it.
pub struct Screen {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn std::io::Write + Send>,
    pub seen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
}

impl Screen {
    pub fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let pty = native_pty_system().openpty(size(100, 30)).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_slabctl"));
        command.arg("top");
        command.args(args);
        command.env_clear();
        command.cwd("/");
        for (name, value) in [
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("HOME", "/none"),
        ] {
            command.env(name, value);
        }
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pty.slave.spawn_command(command).unwrap();
        let seen = Arc::new(Mutex::new((
            vt100::Parser::new(cells(30), cells(100), 0),
            Vec::new(),
        )));
        let mut output = pty.master.try_clone_reader().unwrap();
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut seen = shared.lock().unwrap();
                seen.0.process(&buffer[..count]);
                seen.1.extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            keys: pty.master.take_writer().unwrap(),
            master: pty.master,
            child,
            seen,
        }
    }

    pub fn text(&self) -> String {
        self.seen.lock().unwrap().0.screen().contents()
    }

    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().1).into_owned()
    }

    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + LONG;
        while !holds(self) {
            assert!(
                Instant::now() < end,
                "never: {what}
{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn sees(&self, text: &str) {
        self.until(text, |s| s.text().contains(text));
    }

    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub fn resize(&self, cols: u16, rows: u16) {
        self.seen
            .lock()
            .unwrap()
            .0
            .screen_mut()
            .set_size(cells(rows), cells(cols));
        self.master.resize(size(cols, rows)).unwrap();
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// The letter of the process's state, `T` for stopped.
    pub fn state(&self) -> char {
        let id = self.child.process_id().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest.chars().next().unwrap()
    }

    pub fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What it wrote last.
                std::thread::sleep(Duration::from_millis(200));
                return status;
            }
            assert!(Instant::now() < end, "does not end: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The terminal is as it was: its own screen, the cursor, lines and echo.
    pub fn is_given_back(&self) {
        {
            let seen = self.seen.lock().unwrap();
            let screen = seen.0.screen();
            assert!(!screen.alternate_screen() && !screen.hide_cursor());
            assert!(!screen.bracketed_paste());
        }
        let name = self.master.tty_name().unwrap();
        let modes = Command::new("stty").arg("-a").arg("-F").arg(name).output();
        let modes = String::from_utf8(modes.unwrap().stdout).unwrap();
        let words: Vec<&str> = modes.split([' ', ';', '\n']).collect();
        assert!(
            words.contains(&"icanon") && words.contains(&"echo"),
            "{modes}"
        );
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
