//! One table of the screens. Keys, help, palette and drawing come from it.

use collectors::source::Demand;

use crate::model::Model;
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
        }
    }
}

/// Every screen, in the order of their keys.
pub const SCREENS: &[Screen] = &[view::overview::SCREEN, view::cache::SCREEN];

/// The place of a screen by its name.
pub fn place(name: &str) -> Option<usize> {
    SCREENS.iter().position(|screen| screen.name == name)
}
