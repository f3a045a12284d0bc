//! Key presses and their names in configuration, help and documentation.
//!
//! A letter stands for itself, with its case; other keys have names. `ctrl-`
//! goes before a lower-case letter.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key as it was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub struct Press {
    /// The key.
    pub code: KeyCode,
    /// Whether the control key was held.
    pub ctrl: bool,
}

const NAMES: [(&str, KeyCode); 17] = [
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("null", KeyCode::Null),
];

impl Press {
    /// A key without the control key.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false }
    }

    /// The key of a terminal event; `None` for a release, or with keys held
    /// that mean nothing here.
    pub fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let foreign = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META;
        if event.modifiers.intersects(foreign) {
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let code = match event.code {
            // With control, some terminals tell the case and some do not.
            KeyCode::Char(c) if ctrl => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        Some(Self { code, ctrl })
    }

    /// The key of that name.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("ctrl-") {
            let mut letters = rest.chars();
            let letter = letters.next().filter(char::is_ascii_lowercase)?;
            return letters.next().is_none().then_some(Self {
                code: KeyCode::Char(letter),
                ctrl: true,
            });
        }
        let mut letters = name.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            let visible = !letter.is_control() && letter != ' ';
            return visible.then_some(Self::plain(KeyCode::Char(letter)));
        }
        if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Some(Self::plain(*code));
        }
        let number: u8 = name.strip_prefix('f')?.parse().ok()?;
        (1..=12)
            .contains(&number)
            .then_some(Self::plain(KeyCode::F(number)))
    }

    /// The letter, when it is one that can be typed into a prompt.
    pub fn letter(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter) if !self.ctrl => Some(letter),
            _ => None,
        }
    }
}

impl fmt::Display for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(letter) => write!(f, "{letter}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back() {
        for name in [
            "q", "Q", "/", "ctrl-c", "space", "f1", "f12", "pgup", "backtab", "{", "é",
        ] {
            let press = Press::parse(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(press.to_string(), name);
        }
        for bad in [
            "", " ", "ctrl-", "ctrl-C", "ctrl-cc", "f0", "f13", "escape", "\t",
        ] {
            assert_eq!(Press::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn shift_is_in_the_letter_and_a_release_is_no_press() {
        let event = |code, modifiers| KeyEvent::new(code, modifiers);
        let press = Press::of(&event(KeyCode::Char('G'), KeyModifiers::SHIFT));
        assert_eq!(press, Press::parse("G"));
        let press = Press::of(&event(KeyCode::Char('C'), KeyModifiers::CONTROL));
        assert_eq!(press, Press::parse("ctrl-c"));
        assert_eq!(
            Press::of(&event(KeyCode::Char('x'), KeyModifiers::ALT)),
            None
        );
        let mut release = event(KeyCode::Char('q'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        assert_eq!(Press::of(&release), None);
    }
}
