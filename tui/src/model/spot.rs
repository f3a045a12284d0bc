//! Where the user is on a screen: the picked line, and which of its views is shown.

use super::Key;

/// A line that can be picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// Its place among the lines that scroll.
    pub line: usize,
    /// What it is about; it is found by this when lines come and go.
    pub id: String,
    /// The cache it leads to.
    pub key: Option<Key>,
}

/// The state of one screen, kept while another is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// The place that was picked last.
    place: usize,
    /// What is picked; `None`: the first line.
    id: Option<String>,
    /// The picked line was scrolled away from, to read what is below it.
    pub away: bool,
    /// The first column shown, where a screen scrolls sideways.
    pub across: usize,
    /// Which view is shown: a figure, an order, a grouping.
    pub view: usize,
    /// Which side is turned up: processors or nodes, allocations or frees.
    pub turned: bool,
}

impl Spot {
    /// Nothing was picked yet.
    pub const fn new() -> Self {
        Self {
            place: 0,
            id: None,
            away: false,
            across: 0,
            view: 0,
            turned: false,
        }
    }

    /// The place of what is picked among `ids`; near where it was, if it is gone.
    pub fn place<'a>(&self, ids: impl ExactSizeIterator<Item = &'a str>) -> usize {
        let last = ids.len().saturating_sub(1);
        let Some(id) = self.id.as_deref() else {
            return 0;
        };
        let mut ids = ids;
        ids.position(|i| i == id)
            .unwrap_or_else(|| self.place.min(last))
    }

    /// Picks a line, by its place among `picks`.
    pub fn pick(&mut self, picks: &[Pick], place: usize) {
        if let Some(pick) = picks.get(place) {
            self.place = place;
            self.id = Some(pick.id.clone());
        }
        self.away = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_picked_is_found_wherever_it_went() {
        let picks: Vec<Pick> = ["a", "b", "c"]
            .iter()
            .enumerate()
            .map(|(line, id)| Pick {
                line,
                id: (*id).to_owned(),
                key: None,
            })
            .collect();
        let mut spot = Spot::new();
        assert_eq!(spot.place(["a", "b", "c"].into_iter()), 0);
        spot.pick(&picks, 1);
        assert_eq!(spot.place(["b", "a", "c"].into_iter()), 0);
        assert_eq!(spot.place(["a", "c", "b"].into_iter()), 2);
        assert_eq!(spot.place(["x", "y"].into_iter()), 1, "gone: nearby");
        assert_eq!(spot.place([].into_iter()), 0);
    }
}
