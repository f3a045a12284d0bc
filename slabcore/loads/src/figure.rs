//! Statistics of rounds: medians, quartiles, and ratios with the noise they have.
//!
//! Source of truth: percentile bootstrap (Efron, 1979) of the ratio of two
//! medians. Contenders take turns in a round, so rounds are drawn in pairs: what
//! disturbed a whole round disturbs both sides of a draw. Draws have a fixed
//! seed: the same figures always give the same interval.

use crate::rng::Rng;

/// Draws for an interval.
const DRAWS: usize = 2000;
/// With fewer rounds than this nothing is claimed: of five on one side each, chance alone makes
/// that one time in sixteen.
pub const FEWEST: usize = 6;

/// The middle of some figures; between the two middle ones of an even number.
pub fn median(figures: &[f64]) -> Option<f64> {
    quantile(&sorted(figures), 0.5)
}

/// The lower and the upper quartile.
pub fn quartiles(figures: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(figures);
    Some((quantile(&sorted, 0.25)?, quantile(&sorted, 0.75)?))
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = figures.iter().copied().filter(|f| f.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    #[expect(clippy::cast_sign_loss, reason = "a share of a length")]
    let low = (at as usize).min(last);
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// How many times as much one side needs as the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Ratio of the medians.
    pub value: f64,
    /// 95 % of draws are not below this.
    pub low: f64,
    /// 95 % of draws are not above this.
    pub high: f64,
}

/// What a ratio says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The first side needs less.
    Less,
    /// The first side needs more.
    More,
    /// The noise covers the difference.
    NotShown,
}

impl Ratio {
    /// The ratio of the medians of `a` and `b`, a figure for each round; `None` with too few rounds.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let rounds = a.len().min(b.len());
        let (a, b) = (a.get(..rounds)?, b.get(..rounds)?);
        Self::drawn(a, b, |rng| {
            let round = rng.below(rounds);
            (round, round)
        })
    }

    /// The same of two runs whose rounds have nothing to do with each other.
    pub fn unpaired(a: &[f64], b: &[f64]) -> Option<Self> {
        Self::drawn(a, b, |rng| (rng.below(a.len()), rng.below(b.len())))
    }

    fn drawn(a: &[f64], b: &[f64], pick: impl Fn(&mut Rng) -> (usize, usize)) -> Option<Self> {
        if a.len().min(b.len()) < FEWEST {
            return None;
        }
        let value = ratio(median(a)?, median(b)?)?;
        let mut rng = Rng::new(2023);
        let mut draws = Vec::with_capacity(DRAWS);
        let (mut some_a, mut some_b) = (Vec::new(), Vec::new());
        for _ in 0..DRAWS {
            some_a.clear();
            some_b.clear();
            for _ in 0..a.len().max(b.len()) {
                let (at_a, at_b) = pick(&mut rng);
                some_a.push(a[at_a]);
                some_b.push(b[at_b]);
            }
            // Where a draw has no ratio, the ends of the interval are not known.
            draws.push(ratio(median(&some_a)?, median(&some_b)?)?);
        }
        let draws = sorted(&draws);
        Some(Self {
            value,
            low: quantile(&draws, 0.025)?,
            high: quantile(&draws, 0.975)?,
        })
    }

    /// Whether a difference may be claimed.
    pub fn verdict(&self) -> Verdict {
        if self.high < 1.0 {
            Verdict::Less
        } else if self.low > 1.0 {
            Verdict::More
        } else {
            Verdict::NotShown
        }
    }
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (a >= 0.0 && b > 0.0).then(|| a / b)
}

impl Verdict {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
            Self::NotShown => "not-shown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_quartiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN, 5.0]), Some(5.0));
        assert_eq!(quartiles(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some((2.0, 4.0)));
    }

    #[test]
    fn a_clear_difference_is_claimed_and_noise_is_not() {
        let a: Vec<f64> = (0..9).map(|n| 10.0 + f64::from(n % 3) * 0.1).collect();
        let twice: Vec<f64> = a.iter().map(|f| f * 2.0).collect();
        let ratio = Ratio::of(&a, &twice).unwrap();
        assert!((ratio.value - 0.5).abs() < 0.01 && ratio.verdict() == Verdict::Less);
        assert_eq!(Ratio::of(&twice, &a).unwrap().verdict(), Verdict::More);
        let noisy: Vec<f64> = (0..9).map(|n| 10.0 + f64::from(n * 7 % 9)).collect();
        let other: Vec<f64> = (0..9).map(|n| 10.0 + f64::from(n * 5 % 9)).collect();
        assert_eq!(
            Ratio::of(&noisy, &other).unwrap().verdict(),
            Verdict::NotShown
        );
    }

    #[test]
    fn what_disturbs_a_whole_round_hides_no_difference() {
        // Rounds differ tenfold; in each the second side needs a fifth more.
        let a: Vec<f64> = (0..11).map(|n| 10.0 * f64::from(1 + n % 10)).collect();
        let b: Vec<f64> = a.iter().map(|f| f * 1.2).collect();
        assert_eq!(Ratio::of(&a, &b).unwrap().verdict(), Verdict::Less);
    }

    #[test]
    fn few_rounds_and_zeros_claim_nothing() {
        assert_eq!(Ratio::of(&[1.0; 5], &[2.0; 5]), None);
        assert_eq!(Ratio::of(&[2.0; 7], &[0.0; 7]), None);
        // Draws whose median is zero count.
        let often = Ratio::of(&[0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0], &[4.0; 7]).unwrap();
        assert!(often.low < 0.01 && often.verdict() == Verdict::NotShown);
    }

    #[test]
    fn runs_of_different_length_are_not_paired() {
        let long: Vec<f64> = (0..30).map(|n| 10.0 + f64::from(n % 5) * 0.1).collect();
        let short: Vec<f64> = long[..7].iter().map(|f| f * 1.5).collect();
        let ratio = Ratio::unpaired(&short, &long).unwrap();
        assert!(
            ratio.low <= ratio.value && ratio.value <= ratio.high,
            "{ratio:?}"
        );
        assert_eq!(ratio.verdict(), Verdict::More);
    }

    #[test]
    fn the_same_figures_give_the_same_interval() {
        let a: Vec<f64> = (0..7).map(f64::from).map(|n| 1.0 + n * 0.3).collect();
        let b: Vec<f64> = (0..7).map(f64::from).map(|n| 1.5 + n * 0.2).collect();
        assert_eq!(Ratio::of(&a, &b), Ratio::of(&a, &b));
    }
}
