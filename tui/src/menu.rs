//! What the menus offer: orders and columns.

use collectors::columns;

use crate::model::Shown;

/// Orders by letter. Those of slabtop(1) are its own (procps-ng 4.0.2); `d`,
/// `t` and `w` are added.
pub const SORTS: [(char, &str, &str); 13] = [
    ('a', "objects", "objects in use"),
    ('b', "objs_per_slab", "objects in a slab"),
    ('c', "memory", "memory held"),
    ('l', "slabs", "slabs"),
    ('v', "active_slabs", "slabs with an object in use"),
    ('n', "name", "name"),
    ('o', "total_objects", "objects there is room for"),
    ('p', "pages_per_slab", "pages in a slab"),
    ('s', "slab_size", "size of an object"),
    ('u', "object_use", "share in use"),
    ('d', "memory/s", "change of the memory held"),
    ('t', "partial", "partial slabs"),
    ('w', "loss", "memory held and not used"),
];

/// The columns to choose from: the shown ones in their order, then the rest.
pub fn columns(shown: &[Shown]) -> Vec<Shown> {
    let changes = ["memory/s", "slabs/s", "objects/s", "partial/s", "trend"];
    let rest = changes
        .iter()
        .copied()
        .chain(columns::all().iter().map(|c| c.key))
        .filter_map(Shown::find)
        .filter(|column| !shown.contains(column));
    shown.iter().copied().chain(rest).collect()
}

/// The column of that name, or a message that helps.
pub fn column(name: &str) -> Result<Shown, String> {
    Shown::find(name).ok_or_else(|| {
        let near = columns::similar(name.trim_end_matches("/s"));
        match near.first() {
            Some(best) => format!("no column {name:?}: did you mean {best}?"),
            None => format!("no column {name:?}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_column_and_every_letter_is_one() {
        let mut letters: Vec<char> = SORTS.iter().map(|(letter, ..)| *letter).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), SORTS.len());
        for (_, name, _) in SORTS {
            assert!(column(name).is_ok(), "{name}");
        }
        // slabtop's letters, as its manual lists them.
        for letter in "abclvnopsu".chars() {
            assert!(letters.contains(&letter), "{letter}");
        }
    }

    #[test]
    fn the_shown_columns_come_first_and_none_twice() {
        let shown = [Shown::find("slabs").unwrap(), Shown::Trend];
        let choices = columns(&shown);
        assert_eq!(choices[..2], shown);
        let mut names: Vec<_> = choices.iter().map(Shown::name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_slip_is_helped() {
        assert_eq!(
            column("memroy").unwrap_err(),
            "no column \"memroy\": did you mean memory?"
        );
    }
}
