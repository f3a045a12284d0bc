//! The live screen of slabctl: a model, what messages do to it, and how it looks.
//!
//! ```text
//! sampler thread --newest sample wins--> |        | --Effect--> the loop, the worker thread
//! input thread   --channel of 64------->  | update |
//! signals        ---------------------->  |        | --Model---> view --> terminal
//! ```
//!
//! * [`model`] is all state; [`update::update`] changes it by a [`msg::Msg`]
//!   and returns [`msg::Effect`]s; [`view`] draws it. None of the three does
//!   I/O or reads a clock, so a test needs no terminal and no time.
//! * [`run`] owns the terminal and the threads. A slow source never holds up a
//!   key: samples are taken elsewhere, and a newer one replaces one that was
//!   not looked at yet.
//! * [`linear`] writes the same figures as lines, for screen readers, serial
//!   consoles and pipes.
//!
//! The crate opens no files. What is to be written or changed outside is asked
//! of a [`host::Host`], and a configuration comes as text.
//!
//! # Adding a screen
//!
//! 1. A file in `view/` with a `pub const SCREEN: Screen`. Most screens are
//!    [`screens::Body::Lines`]: a function from the model and a width to lines
//!    of parts with roles; scrolling, and saying how much is below, is done for
//!    them. [`screens::Body::Page`] is the same with lines that can be picked
//!    and a head that stays. A screen that draws itself is [`screens::Body::Drawn`].
//! 2. One entry in [`screens::SCREENS`]. Its key, the help, the palette, the
//!    configuration and `docs/KEYS.md` follow from it (a test says how to
//!    write that file anew).
//! 3. Its `ask` names what a live source must read while it is shown; what it
//!    does not name is not read. Figures of the shown moment are in
//!    `model.time.shown`, those of the moment before in `model.time.before`,
//!    of the mark in `model.time.mark`; `model.time.full` is the last sample
//!    for which everything was read (every 30 seconds, less often where that takes long), `first` the first such.
//! 4. It says where its figures come from and, where one is missing, why.
//!
//! Colours are named by [`theme::Role`] and every role has a partner in text;
//! signs are from [`glyphs::Glyphs`]. Text of a source goes through
//! [`view::canvas::Canvas`], which lets nothing command the terminal.

pub mod config;
pub mod glyphs;
pub mod host;
pub mod keys;
pub mod linear;
pub mod menu;
pub mod model;
pub mod msg;
pub mod picture;
pub mod press;
pub mod run;
pub mod screens;
pub mod text;
pub mod theme;
pub mod update;
pub mod view;
pub mod widgets;

#[cfg(test)]
mod testing;
