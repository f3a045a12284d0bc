//! The loop with its real threads, a scripted source and a screen in memory,
//! as user actions.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use collectors::model::{Cache, Snapshot};
use collectors::source::{Demand, Source};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::event::Event;
use super::sampler::{self, Mailbox, Sampling};
use super::{App, threads};
use crate::host::{Export, Host};
use crate::model::{Model, Settings};
use crate::msg::Change;
use crate::press::Press;
use crate::testing::{cache, sample};

/// Longest wait for something to be seen.
const LONG: Duration = Duration::from_secs(20);

/// What a sample comes to: caches, or why there is none; after how long.
type Step = (Duration, Result<Vec<Cache>, String>);

/// A source that plays its steps; the last one is repeated, and comes at once
/// when a cache is looked at.
struct Script {
    steps: Vec<Step>,
    next: usize,
    asked: Arc<Mutex<Vec<Demand>>>,
}

impl Source for Script {
    fn describe(&self) -> String {
        "a script".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn sample(&mut self, demand: &Demand) -> Result<Snapshot, collectors::Error> {
        self.asked.lock().unwrap().push(demand.clone());
        let last = self.steps.len() - 1;
        let place = if demand.focus.is_some() {
            last
        } else {
            self.next.min(last)
        };
        let (wait, step) = &self.steps[place];
        self.next += 1;
        std::thread::sleep(*wait);
        match step {
            Ok(caches) => Ok(sample(caches.clone(), self.next as u64).snapshot),
            Err(why) => Err(collectors::Error::Unavailable {
                what: "the script".to_owned(),
                why: why.clone(),
            }),
        }
    }
}

/// Remembers what it was asked for.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<String>>>);

impl Memory {
    fn add(&self, text: String) -> String {
        self.0.lock().unwrap().push(text.clone());
        text
    }
}

impl Host for Memory {
    fn export(&mut self, list: &Export) -> Result<String, String> {
        let names: Vec<&str> = list.rows.iter().map(|r| r[0].as_str()).collect();
        Ok(self.add(format!("{}: {}", list.path.display(), names.join(" "))))
    }

    fn picture(&mut self, path: &Path, text: &str) -> Result<String, String> {
        Ok(self.add(format!("{}: {}", path.display(), text.lines().count())))
    }

    fn snapshot(&mut self, path: &Path) -> Result<String, String> {
        Ok(self.add(format!("snapshot {}", path.display())))
    }

    fn change(&mut self, change: Change, cache: &str) -> Result<String, String> {
        Ok(self.add(format!("{change:?} {cache}")))
    }
}

struct Session {
    app: App<TestBackend>,
    inbox: Receiver<Event>,
    keys: SyncSender<Event>,
    asked: Arc<Mutex<Vec<Demand>>>,
    host: Memory,
}

impl Session {
    fn start(interval: Duration, steps: Vec<Step>) -> Self {
        let start = Instant::now();
        let (events, inbox) = sync_channel(super::QUEUE);
        let (control, orders) = channel();
        let mailbox = Arc::new(Mailbox::default());
        let settings = Settings {
            interval,
            allow_write: true,
            can_capture: true,
            ..Settings::default()
        };
        let model = Model::new(settings, "the source", true);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script = Script {
            steps,
            next: 0,
            asked: Arc::clone(&asked),
        };
        sampler::spawn(Sampling {
            open: Box::new(|| Ok(Box::new(script))),
            start,
            demand: model.demand(),
            interval,
            mailbox: Arc::clone(&mailbox),
            events: events.clone(),
            control: orders,
        })
        .unwrap();
        let host = Memory::default();
        let jobs = threads::worker(Box::new(host.clone()), events.clone()).unwrap();
        let terminal = Terminal::new(TestBackend::new(100, 45)).unwrap();
        let mut app = App {
            terminal,
            model,
            start,
            control,
            jobs,
            mailbox,
            taken: None,
            ended: None,
        };
        app.resized().unwrap();
        app.draw().unwrap();
        Self {
            app,
            inbox,
            keys: events,
            asked,
            host,
        }
    }

    fn screen(&self) -> String {
        let buffer = self.app.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let lines = buffer.content.chunks(width);
        lines
            .map(|line| {
                line.iter()
                    .map(ratatui::buffer::Cell::symbol)
                    .collect::<String>()
                    + "\n"
            })
            .collect()
    }

    /// Takes events in until it holds.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> &mut Self {
        let end = Instant::now() + LONG;
        while !holds(self) {
            assert!(Instant::now() < end, "never: {what}\n{}", self.screen());
            if let Ok(event) = self.inbox.recv_timeout(Duration::from_millis(20)) {
                self.app.event(event).unwrap();
                self.app.draw().unwrap();
            }
        }
        self
    }

    fn sees(&mut self, text: &str) -> &mut Self {
        self.until(text, |s| s.screen().contains(text))
    }

    fn sees_no(&mut self, text: &str) -> &mut Self {
        self.until(text, |s| !s.screen().contains(text))
    }

    fn press(&mut self, keys: &str) -> &mut Self {
        for word in keys.split_whitespace() {
            let press = Press::parse(word).unwrap_or_else(|| panic!("{word}"));
            self.keys.send(Event::Press(press)).unwrap();
            self.drain();
        }
        self
    }

    fn types(&mut self, text: &str) -> &mut Self {
        self.keys.send(Event::Paste(text.to_owned())).unwrap();
        self.drain();
        self
    }

    /// Takes in what waits.
    fn drain(&mut self) {
        while let Ok(event) = self.inbox.try_recv() {
            self.app.event(event).unwrap();
        }
        self.app.draw().unwrap();
    }
}

fn now(caches: Vec<Cache>) -> Step {
    (Duration::ZERO, Ok(caches))
}

const FAST: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn a_key_is_answered_while_the_source_takes_five_seconds() {
    let slow = (Duration::from_secs(5), Ok(vec![cache("late", 9)]));
    let mut session = Session::start(FAST, vec![now(vec![cache("early", 1)]), slow]);
    session.sees("early");
    // The second sample is under way now. The best of several tries: a test
    // machine is not this program's alone.
    let mut best = LONG;
    for _ in 0..10 {
        let pressed = Instant::now();
        session.press("?");
        assert!(session.screen().contains("Keys: type to search"));
        session.press("esc");
        assert!(!session.screen().contains("Keys: type to search"));
        best = best.min(pressed.elapsed() / 2);
    }
    assert!(best < Duration::from_millis(30), "{best:?}");
    assert!(!session.screen().contains("late"));
}

#[test]
fn a_growing_cache_is_found_marked_and_looked_into() {
    let grow = |slabs| now(vec![cache("steady", 100), cache("grows", slabs)]);
    let steps = (1..=2000).map(|n| grow(n.min(200))).collect();
    let mut session = Session::start(FAST, steps);
    session.sees("grows").press("m").sees("marked");
    session.press("s d d").sees("+Space");
    session.until("growth comes first", |s| {
        s.screen()
            .lines()
            .nth(2)
            .is_some_and(|l| l.contains("grows"))
    });
    session
        .press("enter")
        .sees("no other name is merged into it");
    session.sees("inferred from the sizes of the lists");
    session.press("esc").sees("steady");
}

#[test]
fn a_sample_that_fails_is_told_and_the_next_one_mends_it() {
    let fail = |_| (Duration::from_millis(20), Err("it went away".to_owned()));
    let mut steps = vec![now(vec![cache("here", 5)])];
    steps.extend((0..20).map(fail));
    steps.push(now(vec![cache("back", 6)]));
    let mut session = Session::start(FAST, steps);
    session
        .sees("here")
        .sees("!! no sample: the script is not there: it went away");
    session.sees("here").sees("back").sees_no("no sample");
}

#[test]
fn a_source_that_cannot_be_read_at_all_ends_the_program() {
    let never = (Duration::ZERO, Err("no such thing".to_owned()));
    let mut session = Session::start(FAST, vec![never]);
    session.until("it ends", |s| s.app.ended.is_some());
}

#[test]
fn a_loop_that_is_held_up_gets_the_newest_sample_and_counts_the_rest() {
    let steps = (1..=5000).map(|n| now(vec![cache("a", n)])).collect();
    let mut session = Session::start(Duration::from_millis(1), steps);
    session.sees("a");
    std::thread::sleep(Duration::from_millis(200));
    session.drain();
    session.sees("samples unseen");
    assert!(session.app.model.replaced > 3);
}

#[test]
fn the_cache_that_is_looked_at_is_read_in_full() {
    let mut session = Session::start(NEVER, vec![now(vec![cache("big", 9), cache("small", 1)])]);
    session.sees("big").press("j enter").sees("Memory");
    session.until("small is in focus", |s| {
        let asked = s.asked.lock().unwrap();
        asked.last().and_then(|d| d.focus.clone()).as_deref() == Some("small")
    });
    // Only the list for the first frame, then everything once.
    let asked = session.asked.lock().unwrap();
    assert!(asked[0].quantities.is_empty() && !asked[0].counters);
    assert!(asked[1].counters && asked[1].machine);
}

#[test]
fn call_sites_are_read_once_however_many_samples_are_taken() {
    let slow = (Duration::from_millis(20), Ok(vec![cache("big", 9)]));
    let mut session = Session::start(FAST, vec![slow]);
    session.sees("big").press("5");
    // Samples that nobody looks at replace the one that was asked for.
    std::thread::sleep(Duration::from_millis(200));
    session.sees("slab_debug=U,big");
    let count = |s: &Session| {
        let asked = s.asked.lock().unwrap();
        let looks = asked.iter().filter(|d| d.sites_of.is_some()).count();
        (looks, asked.len())
    };
    let (looks, samples) = count(&session);
    assert_eq!(looks, 1);
    session.until("more samples", |s| count(s).1 > samples + 5);
    assert_eq!(count(&session).0, 1);
    session.press("R");
    session.until("read anew", |s| count(s).0 == 2);
    assert!(session.asked.lock().unwrap().iter().all(|d| !d.sites));
}

#[test]
fn a_cache_that_goes_away_while_it_is_looked_at_is_said_to_be_gone() {
    let mut steps = vec![now(vec![cache("goes", 9), cache("stays", 8)]); 5000];
    steps.push(now(vec![cache("stays", 8)]));
    let mut session = Session::start(Duration::from_millis(50), steps);
    session
        .sees("goes")
        .press("enter")
        .sees("the cache is not in this sample");
    session.press("esc").sees("stays");
}

#[test]
fn what_is_written_is_the_list_as_it_is_shown() {
    let caches = vec![cache("one", 1), cache("two", 200), cache("three", 30)];
    let mut session = Session::start(NEVER, vec![now(caches)]);
    session
        .sees("three")
        .press("/")
        .types("slabs<100")
        .press("enter");
    session
        .press("e")
        .types("out.csv")
        .press("enter")
        .sees("out.csv: three one");
    session
        .press("w")
        .types("s.tar")
        .press("enter")
        .sees("snapshot s.tar");
    session
        .press("V")
        .sees("validate three?")
        .press("y")
        .sees("Validate three");
    assert_eq!(session.host.0.lock().unwrap().len(), 3);
}

#[test]
fn quitting_ends_the_loop() {
    let mut session = Session::start(NEVER, vec![now(vec![cache("a", 1)])]);
    session.sees("a");
    session
        .keys
        .send(Event::Press(Press::parse("q").unwrap()))
        .unwrap();
    let end = session.app.work(&session.inbox).unwrap();
    assert!(matches!(end, super::End::Left { keep: false }));
}
