//! One table of everything a key can do.
//!
//! The key map, the help overlay, the palette, the footer, the configuration
//! and `docs/KEYS.md` are all drawn from it. An action that does not exist in
//! a build is not in the table.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::press::Press;
use crate::screens::SCREENS;

/// Under which heading the help shows an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Leaving, help, the terminal.
    General,
    /// Moving.
    Movement,
    /// Screens.
    Screens,
    /// What the list shows.
    List,
    /// Time.
    Time,
    /// Writing something.
    Output,
    /// Changing something in the kernel.
    Kernel,
}

impl Group {
    /// Every group in the order of the help.
    pub const ALL: [Self; 7] = [
        Self::General,
        Self::Movement,
        Self::Screens,
        Self::List,
        Self::Time,
        Self::Output,
        Self::Kernel,
    ];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::General => "General",
            Self::Movement => "Movement",
            Self::Screens => "Screens",
            Self::List => "List",
            Self::Time => "Time",
            Self::Output => "Output",
            Self::Kernel => "Kernel (with --allow-write)",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// What it does.
    pub action: Action,
    /// The name in the configuration and in the palette.
    pub name: &'static str,
    /// The keys without a configuration.
    pub keys: Vec<&'static str>,
    /// One line on what it does.
    pub doc: &'static str,
    /// The heading in the help.
    pub group: Group,
    /// A word for the footer; empty: it is not there.
    pub word: &'static str,
}

macro_rules! actions {
    ($($group:ident { $($action:ident $name:literal [$($key:literal)*] $doc:literal $word:literal;)* })*) => {
        /// Something the user can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action {
            $($(#[doc = $doc] $action,)*)*
            /// Show the screen with this place in the table of screens.
            Screen(usize),
        }

        /// Every binding but those of the screens.
        fn fixed() -> Vec<Binding> {
            vec![$($(Binding {
                action: Action::$action,
                name: $name,
                keys: vec![$($key),*],
                doc: $doc,
                group: Group::$group,
                word: $word,
            },)*)*]
        }
    };
}

// Action, name in configuration and palette, keys, what it does, word in the footer.
actions! {
    General {
        Help "help" ["?" "f1"] "Show the keys; type to search" "help";
        Palette "palette" [":"] "Type the name of a command" "";
        Back "back" ["esc"] "Close what is open, or go back" "";
        Redraw "redraw" ["ctrl-l"] "Paint the screen anew" "";
        Suspend "suspend" ["ctrl-z"] "Suspend; fg comes back" "";
        Quit "quit" ["q" "ctrl-c"] "Quit" "quit";
        QuitKeep "quit-keep" ["Q"] "Quit and leave the last frame on the screen" "";
    }
    Movement {
        Down "down" ["j" "down"] "One line down" "";
        Up "up" ["k" "up"] "One line up" "";
        PageDown "page-down" ["pgdn"] "One page down" "";
        PageUp "page-up" ["pgup"] "One page up" "";
        HalfDown "half-down" ["ctrl-d"] "Half a page down" "";
        HalfUp "half-up" ["ctrl-u"] "Half a page up" "";
        Top "top" ["g" "home"] "To the first line" "";
        Bottom "bottom" ["G" "end"] "To the last line" "";
        Open "open" ["enter"] "Look into the selected cache" "detail";
        Left "left" ["h" "left"] "Columns to the left, where a screen has more than fit" "";
        Right "right" ["l" "right"] "Columns to the right" "";
    }
    Screens {
        NextScreen "next-screen" ["tab"] "The next screen" "";
        PreviousScreen "previous-screen" ["backtab"] "The screen before" "";
        LastScreen "last-screen" ["-"] "The screen that was shown last" "";
        View "view" ["v"] "Another view of the screen: its figure, its order, its grouping" "";
        Turn "turn" ["o"] "The other side of the screen: nodes for CPUs, frees for allocations" "";
        Refresh "refresh" ["R"] "Read anew what is read on demand only: call sites" "";
    }
    List {
        Filter "filter" ["/"] "Show only some caches, for example: size>10M and not kmalloc-*" "filter";
        Sort "sort" ["s"] "Choose the order; the letters are slabtop's" "sort";
        SortLeft "sort-left" ["<"] "Sort by the column to the left" "";
        SortRight "sort-right" [">"] "Sort by the column to the right" "";
        Reverse "reverse" ["r"] "Turn the order round" "";
        Columns "columns" ["c"] "Choose the columns" "";
        Units "units" ["u"] "Sizes in powers of 1024, of 1000, in bytes" "";
        HideEmpty "hide-empty" ["z"] "Hide or show caches that hold nothing" "";
        Aliases "aliases" ["A"] "One line for each name, or for each cache" "";
        Deltas "deltas" ["d"] "Changes since the mark, or for a second" "";
    }
    Time {
        Pause "pause" ["space"] "Hold the screen, or go on" "pause";
        StepBack "step-back" ["t"] "The sample before" "";
        StepForward "step-forward" ["T"] "The sample after" "";
        MinuteBack "minute-back" ["{"] "A minute back" "";
        MinuteForward "minute-forward" ["}"] "A minute forward" "";
        Jump "jump" ["b"] "Go to a time: 10:32:07, or -90s" "";
        Faster "faster" ["+"] "Sample more often" "";
        Slower "slower" ["_"] "Sample less often" "";
        Mark "mark" ["m"] "Remember this moment to compare with" "mark";
        ClearMark "clear-mark" ["M"] "Forget the mark" "";
    }
    Output {
        Snapshot "snapshot" ["w"] "Write all slab state of the machine into a file" "";
        Export "export" ["e"] "Write the list as it is filtered and sorted (.csv, .json), or the screen (.svg, .txt)" "";
    }
    Kernel {
        Validate "validate" ["V"] "Have the kernel check the selected cache" "";
        Shrink "shrink" ["S"] "Have the kernel free empty slabs of the selected cache" "";
    }
}

/// Every binding, by group.
pub fn bindings() -> Vec<Binding> {
    let screens = SCREENS.iter().enumerate().map(|(place, screen)| Binding {
        action: Action::Screen(place),
        name: screen.name,
        keys: vec![screen.key],
        doc: screen.doc,
        group: Group::Screens,
        word: "",
    });
    fixed().into_iter().chain(screens).collect()
}

/// Why a key map cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No action has this name.
    #[error("no action {name:?}{}", near(name))]
    UnknownAction {
        /// What was written.
        name: String,
    },
    /// No key has this name.
    #[error("no key {key:?} (for {action})")]
    UnknownKey {
        /// What was written.
        key: String,
        /// For which action.
        action: String,
    },
    /// One key for two actions.
    #[error("key {key} is bound twice: to {first} and to {second}")]
    Duplicate {
        /// The key.
        key: String,
        /// The action that had it.
        first: &'static str,
        /// The action that wants it too.
        second: &'static str,
    },
}

fn near(name: &str) -> String {
    let table = bindings();
    let found = collectors::similar::closest(name, table.iter().map(|b| b.name));
    match found.first() {
        Some(best) => format!(": did you mean {best}?"),
        None => String::new(),
    }
}

/// Which key does what.
#[derive(Debug, Clone)]
pub struct Keymap {
    map: HashMap<Press, Action>,
    table: Vec<(Binding, Vec<Press>)>,
}

impl Keymap {
    /// The table's own keys, replaced by those of `changes`: an action's name
    /// and its keys. Two actions on one key are an error.
    pub fn new(changes: &[(String, Vec<String>)]) -> Result<Self, KeyError> {
        let table = bindings();
        for (name, _) in changes {
            if !table.iter().any(|b| b.name == *name) {
                return Err(KeyError::UnknownAction { name: name.clone() });
            }
        }
        let mut map = HashMap::new();
        let mut owners: HashMap<Press, &'static str> = HashMap::new();
        let mut rows = Vec::with_capacity(table.len());
        for binding in table {
            let own = changes.iter().find(|(name, _)| name == binding.name);
            let names: Vec<&str> = match own {
                Some((_, keys)) => keys.iter().map(String::as_str).collect(),
                None => binding.keys.clone(),
            };
            let mut presses = Vec::with_capacity(names.len());
            for key in names {
                let press = Press::parse(key).ok_or_else(|| KeyError::UnknownKey {
                    key: key.to_owned(),
                    action: binding.name.to_owned(),
                })?;
                if let Some(first) = owners.insert(press, binding.name) {
                    return Err(KeyError::Duplicate {
                        key: press.to_string(),
                        first,
                        second: binding.name,
                    });
                }
                map.insert(press, binding.action);
                presses.push(press);
            }
            rows.push((binding, presses));
        }
        Ok(Self { map, table: rows })
    }

    /// The table's own keys.
    pub fn standard() -> Self {
        // A test holds the table to have neither unknown nor duplicate keys.
        Self::new(&[]).unwrap_or_else(|_| Self {
            map: HashMap::new(),
            table: Vec::new(),
        })
    }

    /// What the key does.
    pub fn action(&self, press: Press) -> Option<Action> {
        self.map.get(&press).copied()
    }

    /// Every binding with its keys, in the order of the help.
    pub fn rows(&self) -> impl Iterator<Item = (&Binding, &[Press])> {
        self.table.iter().map(|(binding, keys)| (binding, &**keys))
    }

    /// The keys of an action as text, for example `? f1`.
    pub fn keys_of(&self, action: Action) -> String {
        let found = self.table.iter().find(|(b, _)| b.action == action);
        found.map_or_else(String::new, |(_, keys)| names(keys))
    }
}

/// Keys as one text.
pub fn names(keys: &[Press]) -> String {
    let mut text = String::new();
    for key in keys {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}{key}");
    }
    text
}

/// The table as Markdown, for the documentation.
pub fn document() -> String {
    let map = Keymap::standard();
    let mut text = String::from(
        "# Keys of `slabctl top`\n\n\
         Written by the program (`slabctl top --list-keys`). The names are those of the configuration and of the palette.\n",
    );
    for group in Group::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n| keys | name | what it does |\n|---|---|---|\n",
            group.title()
        );
        for (binding, keys) in map.rows().filter(|(b, _)| b.group == group) {
            let keys: Vec<String> = keys.iter().map(|k| format!("`{k}`")).collect();
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                keys.join(" "),
                binding.name,
                binding.doc
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, keys: &[&str]) -> (String, Vec<String>) {
        (
            name.to_owned(),
            keys.iter().map(|k| (*k).to_owned()).collect(),
        )
    }

    #[test]
    fn the_table_has_no_double_key_and_no_double_name() {
        Keymap::new(&[]).unwrap();
        let table = bindings();
        let mut names: Vec<_> = table.iter().map(|b| b.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.len());
    }

    #[test]
    fn the_documentation_is_what_the_program_writes() {
        let kept = include_str!("../../docs/KEYS.md");
        assert_eq!(
            kept,
            document(),
            "write it anew: slabctl top --list-keys > docs/KEYS.md"
        );
    }

    #[test]
    fn a_binding_can_be_moved_and_taken_away() {
        let map = Keymap::new(&[change("quit", &["x"]), change("export", &[])]).unwrap();
        let press = |name| Press::parse(name).unwrap();
        assert_eq!(map.action(press("x")), Some(Action::Quit));
        assert_eq!(map.action(press("q")), None);
        assert_eq!(map.action(press("e")), None);
        assert_eq!(map.keys_of(Action::Quit), "x");
    }

    #[test]
    fn slips_are_named() {
        let error = Keymap::new(&[change("quitt", &["x"])]).unwrap_err();
        assert_eq!(error.to_string(), "no action \"quitt\": did you mean quit?");
        let error = Keymap::new(&[change("quit", &["hyper-x"])]).unwrap_err();
        assert_eq!(error.to_string(), "no key \"hyper-x\" (for quit)");
        let error = Keymap::new(&[change("quit", &["/"])]).unwrap_err();
        assert!(error.to_string().contains("bound twice"), "{error}");
    }
}
