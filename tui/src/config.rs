//! The configuration: TOML text in, settings out. What is not known, or twice
//! there, is an error with its place.
//!
//! ```toml
//! theme = "okabe"            # ansi, mono, okabe, contrast
//! interval = "2s"
//! history = "30m"
//! units = "si"               # iec, si, bytes
//! columns = ["name", "memory", "memory/s", "trend"]
//! sort = "memory/s"
//! filter = "size>1M"
//! hide_empty = false
//! ascii = true
//!
//! [keys]
//! quit = ["x", "ctrl-c"]
//! export = []                # no key
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use collectors::filter::Filter;
use collectors::units::{Scale, parse_time};
use serde::Deserialize;

use crate::glyphs::Glyphs;
use crate::keys::{KeyError, Keymap};
use crate::menu;
use crate::model::{List, Settings};
use crate::theme::Theme;

/// What a configuration may say; everything may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    theme: Option<String>,
    interval: Option<String>,
    history: Option<String>,
    units: Option<String>,
    columns: Option<Vec<String>>,
    sort: Option<String>,
    filter: Option<String>,
    hide_empty: Option<bool>,
    ascii: Option<bool>,
    #[serde(default)]
    keys: BTreeMap<String, Keys>,
}

/// One key, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Keys {
    One(String),
    Several(Vec<String>),
}

/// Why a configuration is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or says something that is not known.
    #[error("{place}: {what}")]
    Text {
        /// Line and column, from 1.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A value means nothing.
    #[error("{name}: {what}")]
    Value {
        /// Of which setting.
        name: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The keys contradict each other.
    #[error("keys: {0}")]
    Keys(#[from] KeyError),
}

/// Shortest time between two samples.
pub const SHORTEST: Duration = Duration::from_millis(100);

/// Applies a configuration to settings and to a list.
pub fn apply(text: &str, settings: &mut Settings, list: &mut List) -> Result<(), ConfigError> {
    let config: Text = toml::from_str(text).map_err(|e| syntax(text, &e))?;
    if let Some(name) = &config.theme {
        settings.theme = Theme::from_name(name).ok_or_else(|| {
            let known = Theme::NAMES.map(|(name, _)| name);
            value("theme", format!("{name:?} is none of {}", known.join(", ")))
        })?;
    }
    if let Some(text) = &config.interval {
        settings.interval = time("interval", text)?;
        if settings.interval < SHORTEST {
            return Err(value("interval", format!("{SHORTEST:?} at the least")));
        }
    }
    if let Some(text) = &config.history {
        settings.history = time("history", text)?;
    }
    if let Some(name) = &config.units {
        settings.scale = match name.as_str() {
            "iec" => Scale::Iec,
            "si" => Scale::Si,
            "bytes" => Scale::Bytes,
            _ => {
                return Err(value(
                    "units",
                    format!("{name:?} is none of iec, si, bytes"),
                ));
            }
        };
    }
    if config.ascii == Some(true) {
        settings.glyphs = Glyphs::ASCII;
    }
    shape(&config, list)?;
    let keys: Vec<(String, Vec<String>)> = config
        .keys
        .into_iter()
        .map(|(name, keys)| match keys {
            Keys::One(key) => (name, vec![key]),
            Keys::Several(keys) => (name, keys),
        })
        .collect();
    settings.keys = Keymap::new(&keys)?;
    Ok(())
}

fn shape(config: &Text, list: &mut List) -> Result<(), ConfigError> {
    if let Some(names) = &config.columns {
        let columns = names.iter().map(|name| menu::column(name));
        list.columns = columns
            .collect::<Result<_, _>>()
            .map_err(|what| value("columns", what))?;
        if list.columns.is_empty() {
            return Err(value("columns", "name at least one".to_owned()));
        }
    }
    if let Some(name) = &config.sort {
        list.sort = menu::column(name).map_err(|what| value("sort", what))?;
    }
    if let Some(text) = &config.filter {
        list.filter = Filter::parse(text).map_err(|e| value("filter", e.to_string()))?;
        list.filter_text.clone_from(text);
    }
    if let Some(hide) = config.hide_empty {
        list.hide_empty = hide;
    }
    Ok(())
}

fn value(name: &'static str, what: String) -> ConfigError {
    ConfigError::Value { name, what }
}

fn time(name: &'static str, text: &str) -> Result<Duration, ConfigError> {
    parse_time(text).ok_or_else(|| value(name, format!("{text:?} is no time: 500ms, 2s, 10m")))
}

fn syntax(text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    ConfigError::Text {
        place: format!("line {line}, column {column}"),
        what: error.message().replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Action;

    fn read(text: &str) -> Result<(Settings, List), String> {
        let (mut settings, mut list) = (Settings::default(), List::default());
        apply(text, &mut settings, &mut list).map_err(|e| e.to_string())?;
        Ok((settings, list))
    }

    #[test]
    fn the_example_of_the_module_is_understood() {
        let source = include_str!("config.rs");
        let example: Vec<&str> = source
            .lines()
            .skip_while(|l| *l != "//! ```toml")
            .skip(1)
            .take_while(|l| *l != "//! ```")
            .map(|l| l.trim_start_matches("//!"))
            .collect();
        let (settings, list) = read(&example.join("\n")).unwrap();
        assert_eq!(settings.theme, Theme::Okabe);
        assert_eq!(settings.interval, Duration::from_secs(2));
        assert_eq!(settings.history, Duration::from_secs(1800));
        assert_eq!(settings.scale, Scale::Si);
        assert_eq!(settings.glyphs, Glyphs::ASCII);
        assert_eq!(list.columns.len(), 4);
        assert_eq!(list.sort.name(), "memory/s");
        assert_eq!(list.filter_text, "size>1M");
        assert!(!list.hide_empty);
        assert_eq!(settings.keys.keys_of(Action::Quit), "x ctrl-c");
        assert_eq!(settings.keys.keys_of(Action::Export), "");
    }

    #[test]
    fn every_slip_is_told_with_its_place_or_name() {
        for (text, says) in [
            (
                "theme = \"ansy\"",
                "theme: \"ansy\" is none of ansi, mono, okabe, contrast",
            ),
            ("\n\ncolour = 1", "line 3, column 1: unknown field `colour`"),
            ("interval = \"soon\"", "interval: \"soon\" is no time"),
            ("interval = \"1ms\"", "interval: 100ms at the least"),
            (
                "columns = [\"memroy\"]",
                "columns: no column \"memroy\": did you mean memory?",
            ),
            ("columns = []", "columns: name at least one"),
            ("filter = \"size>>1\"", "filter: "),
            ("[keys]\nquit = \"/\"", "keys: key / is bound twice"),
            (
                "[keys]\nqiut = \"x\"",
                "keys: no action \"qiut\": did you mean quit?",
            ),
            ("[keys]\nquit = \"hyper\"", "keys: no key \"hyper\""),
            (
                "[keys]\nquit = \"x\"\nquit = \"y\"",
                "line 3, column 1: duplicate key",
            ),
            ("theme = ", "line 1, column 9: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(says), "{text:?}: {error}");
        }
    }
}
