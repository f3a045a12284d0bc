//! The state of the live screen. Pure data: it reads no file and no clock.

pub mod history;
pub mod list;
pub mod moment;
pub mod overlay;
pub mod shown;
pub mod sites;
pub mod spot;
pub mod time;

use std::time::Duration;

use collectors::columns;
use collectors::source::Demand;
use collectors::units::Scale;

pub use list::{Line, List};
pub use moment::{Key, Moment, Sample, Tracker};
pub use overlay::{Notice, Overlay, Prompt, PromptKind};
pub use shown::Shown;
pub use sites::{Look, Sites, SitesRead};
pub use spot::{Pick, Spot};
pub use time::Time;

use crate::glyphs::Glyphs;
use crate::keys::Keymap;
use crate::msg::Change;
use crate::screens::{SCREENS, Screen};
use crate::theme::Theme;

/// What the program was started with; a configuration file and options change it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The styles.
    pub theme: Theme,
    /// The signs.
    pub glyphs: Glyphs,
    /// How sizes are scaled.
    pub scale: Scale,
    /// Time between two samples.
    pub interval: Duration,
    /// How long samples are kept.
    pub history: Duration,
    /// Which key does what.
    pub keys: Keymap,
    /// The zone of the clock on the wall.
    pub zone: jiff::tz::TimeZone,
    /// Whether the kernel may be changed.
    pub allow_write: bool,
    /// Whether a snapshot of the machine can be written.
    pub can_capture: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            glyphs: Glyphs::UNICODE,
            scale: Scale::Iec,
            interval: Duration::from_secs(1),
            history: Duration::from_secs(600),
            keys: Keymap::standard(),
            zone: jiff::tz::TimeZone::UTC,
            allow_write: false,
            can_capture: false,
        }
    }
}

/// What a change of the kernel came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Which.
    pub change: Change,
    /// The directory or name of the cache.
    pub cache: String,
    /// What was said about it.
    pub done: Result<String, String>,
    /// When, from the start of the program.
    pub at: Duration,
}

impl Changed {
    /// How many are remembered.
    pub const KEPT: usize = 20;
}

/// Bytes that kept samples may take.
const HISTORY_BYTES: usize = 3 << 20;

/// Everything that is on the screen, and what it is made from.
#[derive(Debug)]
pub struct Model {
    /// What the program was started with.
    pub settings: Settings,
    /// What is read, in one line.
    pub source: String,
    /// Whether another sample can differ.
    pub live: bool,
    /// The samples, and which is shown.
    pub time: Time,
    /// The list of caches.
    pub list: List,
    /// The place of the screen that is shown.
    pub screen: usize,
    /// The one that was shown before.
    pub last_screen: usize,
    /// The first line shown, of each screen that only scrolls.
    pub scroll: Vec<usize>,
    /// Where the user is on each screen.
    pub spots: Vec<Spot>,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
    /// A line about what just happened.
    pub notice: Option<Notice>,
    /// Call sites, which are read on demand.
    pub sites: Sites,
    /// What the last changes of the kernel came to, the newest first.
    pub changes: Vec<Changed>,
    /// Why the last sample could not be taken.
    pub trouble: Option<String>,
    /// Changes are shown since the mark, not for a second.
    pub since_mark: bool,
    /// Width and height of the terminal.
    pub size: (u16, u16),
    /// Share of one processor that the program itself takes.
    pub cost: Option<f64>,
    /// Processor time and when it was read, to tell the cost from.
    pub(crate) spent: Option<(Duration, Duration)>,
    /// Samples that nobody saw, since newer ones came.
    pub replaced: u64,
}

impl Model {
    /// Nothing was read yet.
    pub fn new(settings: Settings, source: impl Into<String>, live: bool) -> Self {
        let time = Time::new(settings.history, HISTORY_BYTES);
        Self {
            settings,
            source: source.into(),
            live,
            time,
            list: List::default(),
            screen: 0,
            last_screen: 0,
            scroll: vec![0; SCREENS.len()],
            spots: vec![Spot::new(); SCREENS.len()],
            overlay: None,
            notice: None,
            sites: Sites::default(),
            changes: Vec::new(),
            trouble: None,
            since_mark: false,
            size: (80, 24),
            cost: None,
            spent: None,
            replaced: 0,
        }
    }

    /// The screen that is shown.
    pub fn screen(&self) -> &'static Screen {
        SCREENS.get(self.screen).unwrap_or(&SCREENS[0])
    }

    /// Where the user is on the screen that is shown.
    pub fn spot(&self) -> &Spot {
        const FIRST: &Spot = &Spot::new();
        self.spots.get(self.screen).unwrap_or(FIRST)
    }

    /// What the shown sample is compared with over a longer time: the mark, or
    /// the first sample for which everything was read.
    pub fn origin(&self) -> Option<&Moment> {
        self.time.mark.as_ref().or(self.time.first.as_ref())
    }

    /// What changes are counted from: the mark, or the sample before.
    pub fn base(&self) -> Option<&Moment> {
        if self.since_mark {
            self.time.mark.as_ref()
        } else {
            self.time.before.as_ref()
        }
    }

    /// The key of the selected cache, which may have gone away since: another
    /// cache never takes its place.
    pub fn subject(&self) -> Option<Key> {
        match self.list.selected {
            Some((key, _)) => Some(key),
            None => self.list.line().map(|line| line.key),
        }
    }

    /// The selected cache, where the shown sample has it.
    pub fn selected(&self) -> Option<(Key, &collectors::model::Cache)> {
        let key = self.subject()?;
        Some((key, self.time.shown.as_ref()?.cache(key)?))
    }

    /// What the next sample needs: what is shown, and what decides what is shown.
    pub fn demand(&self) -> Demand {
        let mut demand = Demand::names();
        for column in &self.list.columns {
            column.ask(&mut demand);
        }
        self.list.sort.ask(&mut demand);
        self.list.filter.ask(&mut demand);
        if let Some(memory) = columns::find("memory") {
            memory.ask(&mut demand);
        }
        demand.skip_empty = self.list.hide_empty;
        (self.screen().ask)(self, &mut demand);
        demand
    }
}
