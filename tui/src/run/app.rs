//! The loop's state and what each event does to it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::Backend;

use super::End;
use super::event::Event;
use super::sampler::{Control, Mailbox};
use super::terminal::Taken;
use super::threads::Job;
use crate::host;
use crate::model::Model;
use crate::msg::{Effect, Msg};
use crate::picture;
use crate::update::update;
use crate::view::view;

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(25);

/// The loop's state.
#[derive(Debug)]
pub struct App<B: Backend> {
    /// Where frames are drawn.
    pub terminal: Terminal<B>,
    /// What they show.
    pub model: Model,
    /// When the program was started.
    pub start: Instant,
    /// To the sampler.
    pub control: Sender<Control>,
    /// To the worker.
    pub jobs: SyncSender<Job>,
    /// From the sampler.
    pub mailbox: Arc<Mailbox>,
    /// The terminal's modes; `None` where there are none to be set.
    pub taken: Option<Taken>,
    /// How it ended.
    pub ended: Option<End>,
}

impl<B: Backend> App<B>
where
    B::Error: Send + Sync + 'static,
{
    /// Works until the user leaves.
    pub fn work(&mut self, inbox: &Receiver<Event>) -> io::Result<End> {
        let mut dirty = true;
        let mut drawn: Option<Instant> = None;
        loop {
            let rest = drawn.map_or(Duration::ZERO, |at| FRAME.saturating_sub(at.elapsed()));
            if dirty && rest.is_zero() {
                self.draw()?;
                drawn = Some(Instant::now());
                dirty = false;
            }
            let event = if dirty {
                inbox.recv_timeout(rest)
            } else {
                inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match event {
                Ok(event) => {
                    self.event(event)?;
                    dirty = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(End::Left { keep: false });
                }
            }
            if let Some(end) = self.ended.take() {
                return Ok(end);
            }
        }
    }

    /// Draws a frame.
    pub fn draw(&mut self) -> io::Result<()> {
        self.terminal
            .draw(|frame| view(&self.model, frame))
            .map_err(io::Error::other)?;
        Ok(())
    }

    /// Takes an event in.
    pub fn event(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Press(press) => self.message(Msg::Press(press)),
            Event::Paste(text) => self.message(Msg::Paste(text)),
            Event::Done(done) => self.message(Msg::Done(done)),
            Event::Changed(change, cache, done) => self.message(Msg::Changed(change, cache, done)),
            Event::Mail => match self.mailbox.take() {
                Some(Ok(sample)) => self.message(Msg::Sample(Box::new(sample))),
                Some(Err(why)) => self.message(Msg::Trouble(why)),
                None => Ok(()),
            },
            Event::Opened { describe, live } => {
                self.model.source = describe;
                self.model.live = live;
                Ok(())
            }
            Event::Resized => self.resized(),
            Event::Failed(error) => {
                self.ended = Some(End::Source(error));
                Ok(())
            }
            Event::NoInput(error) => Err(error),
            Event::End(signal) => {
                self.ended = Some(End::Signal(signal));
                Ok(())
            }
            Event::Stop => self.suspend(),
            Event::Continued => {
                if let Some(taken) = &self.taken {
                    taken.retake()?;
                }
                self.repaint()
            }
        }
    }

    /// Asks the terminal for its size.
    pub fn resized(&mut self) -> io::Result<()> {
        let size = self.terminal.size().map_err(io::Error::other)?;
        self.message(Msg::Resize(size.width, size.height))
    }

    fn message(&mut self, msg: Msg) -> io::Result<()> {
        let at = self.start.elapsed();
        for effect in update(&mut self.model, at, msg) {
            self.effect(effect)?;
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Quit { keep } => self.ended = Some(End::Left { keep }),
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => self.repaint()?,
            // Without a sampler there is nobody to tell.
            Effect::Demand(demand) => {
                let _ = self.control.send(Control::Demand(demand));
            }
            Effect::Look(cache) => {
                let _ = self.control.send(Control::Look(cache));
            }
            Effect::Interval(interval) => {
                let _ = self.control.send(Control::Interval(interval));
            }
            Effect::Export { path } => match host::export(&self.model, &path) {
                Some(list) => self.job(Job::Export(Box::new(list)))?,
                None => self.message(Msg::Done(Err("nothing to write yet".to_owned())))?,
            },
            Effect::Picture { path } => {
                let frame = picture::frame(&self.model);
                let text = match path.extension() {
                    Some(form) if form == "svg" => picture::svg(&frame),
                    _ => picture::text(&frame),
                };
                self.job(Job::Picture(path, text))?;
            }
            Effect::Snapshot { path } => self.job(Job::Snapshot(path))?,
            Effect::Change { change, cache } => self.job(Job::Change(change, cache))?,
        }
        Ok(())
    }

    fn job(&mut self, job: Job) -> io::Result<()> {
        match self.jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => self.message(Msg::Done(Err(
                "too much is being written already".to_owned(),
            ))),
            Err(TrySendError::Disconnected(_)) => {
                self.message(Msg::Done(Err("nobody is there to do it".to_owned())))
            }
        }
    }

    fn suspend(&mut self) -> io::Result<()> {
        if let Some(taken) = &self.taken {
            taken.suspend()?;
        }
        self.repaint()
    }

    /// Forgets what is on the terminal. `Terminal::clear` would ask it for the
    /// cursor, which a terminal on a slow line answers late or never.
    fn repaint(&mut self) -> io::Result<()> {
        let size = self.terminal.size().map_err(io::Error::other)?;
        self.terminal
            .resize(ratatui::layout::Rect::new(0, 0, size.width, size.height))
            .map_err(io::Error::other)?;
        self.resized()
    }

    /// The frame that is on the screen, as lines.
    pub fn last_frame(&self) -> String {
        picture::text(&picture::frame(&self.model))
    }
}
