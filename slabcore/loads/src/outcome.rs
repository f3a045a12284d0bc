//! From figures of many rounds to one table.

use crate::load::Load;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Figures of one load: for each contender, one for each round.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The load.
    pub load: Load,
    /// Names and figures; those that could not be had are left out.
    pub of: Vec<(String, Vec<f64>)>,
}

/// One load, decided.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The load.
    pub load: Load,
    /// Name and median of each contender.
    pub medians: Vec<(String, f64)>,
    /// The median of the engine.
    pub engine: f64,
    /// The peer with the lowest median.
    pub best: (String, f64),
}

impl Figures {
    /// Compares the contender `engine` with the best of `peers`; `None` without figures of both.
    pub fn decide(&self, engine: &str, peers: &[String]) -> Option<Outcome> {
        let medians: Vec<_> = self
            .of
            .iter()
            .filter_map(|(name, figures)| Some((name.clone(), median(figures)?)))
            .collect();
        let of_engine = medians.iter().find(|(name, _)| name == engine)?.1;
        let best = medians
            .iter()
            .filter(|(name, _)| peers.contains(name))
            .min_by(|a, b| a.1.total_cmp(&b.1))?
            .clone();
        Some(Outcome {
            load: self.load,
            medians,
            engine: of_engine,
            best,
        })
    }
}

fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

impl Outcome {
    /// What the engine needs for each unit of the best peer.
    pub fn ratio(&self) -> f64 {
        self.engine / self.best.1
    }

    /// Whether the target is reached.
    pub fn met(&self) -> bool {
        self.ratio() <= self.load.target
    }

    fn json(&self) -> Value {
        json!({
            "load": self.load.name(),
            "unit": self.load.unit(),
            "engine": self.engine,
            "best_peer": self.best.0,
            "best": self.best.1,
            "ratio": self.ratio(),
            "target": self.load.target,
            "met": self.met(),
            "medians": self.medians.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    }
}

/// All outcomes as JSON.
pub fn json(outcomes: &[Outcome], rounds: usize) -> Value {
    json!({
        "rounds": rounds,
        "loads": outcomes.iter().map(Outcome::json).collect::<Vec<_>>(),
    })
}

/// All outcomes as text: first against the targets, then every contender.
pub fn table(outcomes: &[Outcome], engine: &str) -> String {
    let mut text = format!(
        "{:<16}{:<10}{engine:>9}{:>9} {:<11}{:>6}{:>8}  met\n",
        "load", "unit", "best", "peer", "ratio", "target"
    );
    for outcome in outcomes {
        let Outcome {
            load, engine, best, ..
        } = outcome;
        let _ = writeln!(
            text,
            "{:<16}{:<10}{engine:>9.2}{:>9.2} {:<11}{:>6.2}{:>8.2}  {}",
            load.name(),
            load.unit(),
            best.1,
            best.0,
            outcome.ratio(),
            load.target,
            if outcome.met() { "yes" } else { "no" },
        );
    }
    let Some(first) = outcomes.first() else {
        return text;
    };
    let _ = write!(text, "\n{:<16}", "load");
    for (name, _) in &first.medians {
        let _ = write!(text, "{name:>15}");
    }
    text.push('\n');
    for outcome in outcomes {
        let _ = write!(text, "{:<16}", outcome.load.name());
        for (_, figure) in &outcome.medians {
            let _ = write!(text, "{figure:>15.2}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LOADS;

    fn figures(engine: f64) -> Figures {
        let of = [("hybrid", engine), ("malloc", 9.0), ("mimalloc", 4.0)]
            .map(|(name, middle)| (name.to_owned(), vec![middle * 3.0, middle, 0.0]));
        Figures {
            load: LOADS[0],
            of: of.into(),
        }
    }

    #[test]
    fn the_best_peer_is_what_counts() {
        let peers = ["malloc".to_owned(), "mimalloc".to_owned()];
        let good = figures(2.0).decide("hybrid", &peers).unwrap();
        assert_eq!(good.best, ("mimalloc".to_owned(), 4.0));
        assert!(good.met() && (good.ratio() - 0.5).abs() < 1e-9);
        assert!(!figures(3.9).decide("hybrid", &peers).unwrap().met());
        assert!(table(&[good], "hybrid").contains("mimalloc     0.50    0.65  yes"));
    }

    #[test]
    fn without_a_peer_nothing_is_decided() {
        assert!(figures(2.0).decide("hybrid", &[]).is_none());
        assert!(
            figures(2.0)
                .decide("sheaves", &["malloc".to_owned()])
                .is_none()
        );
    }
}
