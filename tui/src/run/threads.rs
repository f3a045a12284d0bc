//! The threads that wait: for keys, for signals, for work outside.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use ratatui::crossterm::event::{self, Event as Input};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::event::Event;
use crate::host::{Export, Host};
use crate::msg::Change;
use crate::press::Press;

/// Waits for keys, and for changes of the terminal's size.
pub fn input(events: SyncSender<Event>) -> io::Result<()> {
    Builder::new().name("input".to_owned()).spawn(move || {
        loop {
            let event = match event::read() {
                Ok(Input::Key(key)) => Press::of(&key).map(Event::Press),
                Ok(Input::Paste(text)) => Some(Event::Paste(text)),
                Ok(Input::Resize(..)) => Some(Event::Resized),
                Ok(_) => None,
                // Without keys nobody could leave.
                Err(error) => {
                    let _ = events.send(Event::NoInput(error));
                    break;
                }
            };
            if event.is_some_and(|event| events.send(event).is_err()) {
                break;
            }
        }
    })?;
    Ok(())
}

/// Waits for signals.
pub fn signals(events: SyncSender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT])?;
    Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGTSTP => Event::Stop,
                SIGCONT => Event::Continued,
                other => Event::End(other),
            };
            if events.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// A piece of work outside.
#[derive(Debug)]
pub enum Job {
    /// Write a list.
    Export(Box<Export>),
    /// Write a text: the screen as a picture.
    Picture(PathBuf, String),
    /// Write all slab state of the machine.
    Snapshot(PathBuf),
    /// Change a cache in the kernel.
    Change(Change, String),
}

/// Does work outside, one piece after the other; at most eight wait.
pub fn worker(mut host: Box<dyn Host>, events: SyncSender<Event>) -> io::Result<SyncSender<Job>> {
    let (jobs, waiting): (_, Receiver<Job>) = sync_channel(8);
    Builder::new().name("worker".to_owned()).spawn(move || {
        for job in waiting {
            let done = match job {
                Job::Export(list) => Event::Done(host.export(&list)),
                Job::Picture(path, text) => Event::Done(host.picture(&path, &text)),
                Job::Snapshot(path) => Event::Done(host.snapshot(&path)),
                Job::Change(change, cache) => {
                    let done = host.change(change, &cache);
                    Event::Changed(change, cache, done)
                }
            };
            if events.send(done).is_err() {
                break;
            }
        }
    })?;
    Ok(jobs)
}
