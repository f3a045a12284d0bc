//! Times on the command line, with a message that helps.

use std::time::Duration;

use crate::fail::Failure;

/// Parses a time greater than zero. A bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, Failure> {
    collectors::units::parse_time(text).ok_or_else(|| {
        Failure::usage(format!(
            "{text:?} is no time: write 500ms, 10s, 5m or 1h30m"
        ))
    })
}

/// How long it is to the next multiple of `every`, so that rounds do not drift, and those that
/// were missed while the program was stopped do not come all at once.
pub(crate) fn until_next(elapsed: Duration, every: Duration) -> Duration {
    let into = elapsed.as_nanos().checked_rem(every.as_nanos());
    let into = into.and_then(|nanos| u64::try_from(nanos).ok());
    every.saturating_sub(Duration::from_nanos(into.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_rounds_are_left_out_and_none_drifts() {
        let ms = Duration::from_millis;
        let next = |elapsed| until_next(ms(elapsed), ms(100));
        assert_eq!((next(0), next(1), next(99)), (ms(100), ms(99), ms(1)));
        assert_eq!((next(250), next(2830)), (ms(50), ms(70)));
        assert_eq!(until_next(ms(7), Duration::ZERO), Duration::ZERO);
    }
}
