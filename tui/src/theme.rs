//! Colours by role, never by name: what a text means decides how it looks.
//!
//! Every role also has a glyph or text partner (`glyphs`), so that nothing is
//! said by colour alone. No theme paints a background: the terminal's own
//! stays, light or dark. The default uses the terminal's sixteen colours.

use ratatui::style::{Color, Modifier, Style};

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Normal,
    /// Less important text: where a figure is from, what is not known.
    Dim,
    /// Names of the program, of panels and of columns.
    Header,
    /// The line under the cursor; its partner is `>`.
    Selected,
    /// Something grew; its partner is `+`.
    Up,
    /// Something shrank; its partner is `-`.
    Down,
    /// Worth a look; its partner is `!`.
    Warn,
    /// Wrong; its partner is `!!`.
    Crit,
    /// Keys and figures to be found quickly.
    Accent,
    /// What belongs to the mark; its partner is the mark's glyph.
    Mark,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 10] = [
        Self::Normal,
        Self::Dim,
        Self::Header,
        Self::Selected,
        Self::Up,
        Self::Down,
        Self::Warn,
        Self::Crit,
        Self::Accent,
        Self::Mark,
    ];
}

/// A set of styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// The terminal's sixteen colours.
    #[default]
    Ansi,
    /// No colour: bold, dim and reversed text only.
    Mono,
    /// Blue, orange and vermillion of the Okabe-Ito palette, which colour-blind
    /// people can tell apart; needs 256 colours.
    Okabe,
    /// Bold, and few colours.
    Contrast,
}

impl Theme {
    /// Every theme with its name in options and configuration.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("ansi", Self::Ansi),
        ("mono", Self::Mono),
        ("okabe", Self::Okabe),
        ("contrast", Self::Contrast),
    ];

    /// The theme of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, theme)| *theme)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, theme)| *theme == self);
        found.map_or("ansi", |(name, _)| name)
    }

    /// The style of a role.
    pub fn style(self, role: Role) -> Style {
        let modifiers = modifiers(role);
        let style = Style::new().add_modifier(modifiers);
        match self.color(role) {
            Some(color) => style.fg(color),
            None => style,
        }
    }

    fn color(self, role: Role) -> Option<Color> {
        let [up, down, warn, crit, accent, mark] = match self {
            Self::Mono => return None,
            Self::Ansi => [
                Color::Yellow,
                Color::Cyan,
                Color::Yellow,
                Color::Red,
                Color::Cyan,
                Color::Magenta,
            ],
            // Orange, sky blue, orange, vermillion, blue, purple of the palette.
            Self::Okabe => [
                Color::Indexed(214),
                Color::Indexed(74),
                Color::Indexed(214),
                Color::Indexed(166),
                Color::Indexed(74),
                Color::Indexed(175),
            ],
            Self::Contrast => [
                Color::Reset,
                Color::Reset,
                Color::Yellow,
                Color::Red,
                Color::Reset,
                Color::Reset,
            ],
        };
        let color = match role {
            Role::Up => up,
            Role::Down => down,
            Role::Warn => warn,
            Role::Crit => crit,
            Role::Accent => accent,
            Role::Mark => mark,
            Role::Normal | Role::Dim | Role::Header | Role::Selected => return None,
        };
        (color != Color::Reset).then_some(color)
    }
}

fn modifiers(role: Role) -> Modifier {
    match role {
        Role::Dim => Modifier::DIM,
        Role::Selected => Modifier::REVERSED,
        Role::Header | Role::Accent | Role::Warn | Role::Crit | Role::Mark => Modifier::BOLD,
        Role::Normal | Role::Up | Role::Down => Modifier::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_theme_paints_a_background_or_greys_text() {
        for (_, theme) in Theme::NAMES {
            for role in Role::ALL {
                let style = theme.style(role);
                assert_eq!(style.bg, None, "{theme:?} {role:?}");
                let grey = [Color::DarkGray, Color::Gray, Color::Black, Color::White];
                assert!(!style.fg.is_some_and(|c| grey.contains(&c)));
            }
        }
    }

    #[test]
    fn without_colour_no_role_has_one() {
        for role in Role::ALL {
            assert_eq!(Theme::Mono.style(role).fg, None, "{role:?}");
        }
    }

    #[test]
    fn the_default_keeps_to_the_terminals_own_colours() {
        for role in Role::ALL {
            let color = Theme::Ansi.style(role).fg;
            assert!(!matches!(color, Some(Color::Indexed(_) | Color::Rgb(..))));
        }
    }
}
