//! A figure and whether it is an estimate.

/// A value that may be an estimate.
///
/// Shown with a leading `~` when it is, and named in the JSON field `approx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Approx<T> {
    /// The figure itself.
    pub value: T,
    /// True when the figure is an estimate or a bound.
    pub approx: bool,
}

impl<T> Approx<T> {
    /// A figure that was read as it is.
    pub const fn exact(value: T) -> Self {
        Self {
            value,
            approx: false,
        }
    }

    /// A figure that is estimated, scaled or bounded.
    pub const fn estimate(value: T) -> Self {
        Self {
            value,
            approx: true,
        }
    }

    /// Changes the value and keeps the mark.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Approx<U> {
        Approx {
            value: f(self.value),
            approx: self.approx,
        }
    }

    /// Combines two figures; the result is an estimate when either is.
    pub fn zip_with<U, V>(self, other: Approx<U>, f: impl FnOnce(T, U) -> V) -> Approx<V> {
        Approx {
            value: f(self.value, other.value),
            approx: self.approx || other.approx,
        }
    }
}

impl<T> From<T> for Approx<T> {
    fn from(value: T) -> Self {
        Self::exact(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_with_an_estimate_is_an_estimate() {
        let exact = Approx::exact(2u64);
        let guess = Approx::estimate(3u64);
        assert_eq!(exact.zip_with(guess, |a, b| a * b), Approx::estimate(6));
        assert_eq!(exact.zip_with(exact, |a, b| a * b), Approx::exact(4));
        assert!(guess.map(|v| v + 1).approx);
    }
}
