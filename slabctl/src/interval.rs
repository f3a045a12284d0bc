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
