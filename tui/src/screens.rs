//! One table of the screens. Keys, help, palette and drawing come from it.

use collectors::source::Demand;

use crate::model::{Model, Pick};
use crate::text::Line;
use crate::view;
use crate::view::canvas::Canvas;

/// How a screen fills its body.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// It draws itself.
    Drawn(fn(&Model, &mut Canvas<'_>)),
    /// It is lines for a width, which are scrolled.
    Lines(fn(&Model, usize) -> Vec<Line>),
    /// It is lines for a width, of which some can be picked.
    Page(fn(&Model, usize) -> Page),
}

/// Lines of which some can be picked: each picked line leaves its first cell
/// to the cursor.
#[derive(Debug, Default)]
pub struct Page {
    /// Lines that stay while the others scroll.
    pub head: Vec<Line>,
    /// The others.
    pub lines: Vec<Line>,
    /// Which of them can be picked, from the top.
    pub picks: Vec<Pick>,
}

impl Page {
    /// The place of what is picked.
    pub fn picked(&self, model: &Model) -> usize {
        let ids = self.picks.iter().map(|pick| pick.id.as_str());
        model.spot().place(ids)
    }

    /// Lines of the head in a body of so many lines: something else must be seen too.
    pub fn head_height(&self, body: usize) -> usize {
        self.head.len().min(body.saturating_sub(2))
    }
}

/// A screen.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// The name in the palette and the configuration.
    pub name: &'static str,
    /// The key that shows it.
    pub key: &'static str,
    /// The name on the screen.
    pub title: &'static str,
    /// One line on what it shows.
    pub doc: &'static str,
    /// Whether the keys of movement move the cursor of the list of caches.
    pub moves_list: bool,
    /// Lines of its body that are not lines of the list of caches.
    pub around: usize,
    /// How its body is filled.
    pub body: Body,
    /// Adds to a demand what a live source must read for it.
    pub ask: fn(&Model, &mut Demand),
}

impl Screen {
    /// Lines that can be scrolled through.
    pub fn lines(&self, model: &Model) -> usize {
        match self.body {
            Body::Drawn(_) => 0,
            Body::Lines(lines) => lines(model, usize::from(model.size.0)).len(),
            Body::Page(page) => page(model, usize::from(model.size.0)).lines.len(),
        }
    }

    /// The screen as a page, where it is one.
    pub fn page(&self, model: &Model) -> Option<Page> {
        match self.body {
            Body::Page(page) => Some(page(model, usize::from(model.size.0))),
            _ => None,
        }
    }
}

/// Every screen, in the order of their keys.
pub const SCREENS: &[Screen] = &[
    view::overview::SCREEN,
    view::cache::SCREEN,
    view::matrix::SCREEN,
    view::changes::SCREEN,
    view::sites::SCREEN,
    view::checks::SCREEN,
    view::system::SCREEN,
];

/// The place of a screen by its name.
pub fn place(name: &str) -> Option<usize> {
    SCREENS.iter().position(|screen| screen.name == name)
}
