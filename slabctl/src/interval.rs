//! Times as people write them: `10s`, `500ms`, `5m`, `1h30m`.

use std::time::Duration;

use crate::fail::Failure;

/// A hundred years: more is a slip, and would overflow the clock.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Parses a time greater than zero. A bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, Failure> {
    let bad = || {
        Failure::usage(format!(
            "{text:?} is no time: write 500ms, 10s, 5m or 1h30m"
        ))
    };
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(is_sane)
            .ok_or_else(bad);
    }
    let signed: jiff::SignedDuration = text.parse().map_err(|_| bad())?;
    Duration::try_from(signed)
        .ok()
        .filter(is_sane)
        .ok_or_else(bad)
}

fn is_sane(time: &Duration) -> bool {
    !time.is_zero() && *time <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_habit() {
        assert_eq!(parse("10s").unwrap(), Duration::from_secs(10));
        assert_eq!(parse("2").unwrap(), Duration::from_secs(2));
        assert_eq!(parse("0.5").unwrap(), Duration::from_millis(500));
        assert_eq!(parse("1h30m").unwrap(), Duration::from_secs(5400));
        for bad in ["", "0", "0s", "-1s", "soon", "1e400", "1e19", "nan"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
