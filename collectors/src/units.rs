//! Sizes and ratios for people, and sizes and times from people.

use std::time::Duration;

/// How sizes are scaled for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Powers of 1024: `K`, `M`, `G` (the default).
    #[default]
    Iec,
    /// Powers of 1000: `kB`, `MB`, `GB`.
    Si,
    /// Exact bytes.
    Bytes,
}

const IEC: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
const SI: [&str; 7] = ["", "kB", "MB", "GB", "TB", "PB", "EB"];

/// A size for people: three significant digits with a named unit.
pub fn size(bytes: u64, scale: Scale) -> String {
    let (base, names): (f64, _) = match scale {
        Scale::Bytes => return bytes.to_string(),
        Scale::Iec => (1024.0, IEC),
        Scale::Si => (1000.0, SI),
    };
    let mut value = bytes as f64;
    let mut step = 0;
    // 999.5 would round to a four-digit 1000.
    while value >= base.min(999.5) && step + 1 < names.len() {
        value /= base;
        step += 1;
    }
    if step == 0 {
        return bytes.to_string();
    }
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{}{}", decimal(value, digits), names[step])
}

/// A size as people write it: `512`, `10M`, `1.5GiB`, `64kB`.
///
/// `K`, `M`, `G`, `T` and their `iB` forms are powers of 1024; `kB`, `MB`,
/// `GB`, `TB` are powers of 1000.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim() {
        "" | "B" | "b" => 1,
        "K" | "k" | "KiB" | "Ki" => 1 << 10,
        "M" | "m" | "MiB" | "Mi" => 1 << 20,
        "G" | "g" | "GiB" | "Gi" => 1 << 30,
        "T" | "t" | "TiB" | "Ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    scaled(number, factor)
}

/// A count as people write it: `512`, `10K`, `1.5M`, in powers of 1000.
pub fn parse_count(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .len();
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit {
        "" => 1,
        "K" | "k" => 1_000,
        "M" | "m" => 1_000_000,
        "G" | "g" => 1_000_000_000,
        "T" | "t" => 1_000_000_000_000,
        _ => return None,
    };
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    scaled(number, factor)
}

/// A hundred years: more is a slip, and would overflow the clock.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A time greater than zero as people write it: `10s`, `500ms`, `1h30m`. A
/// bare number is seconds.
pub fn parse_time(text: &str) -> Option<Duration> {
    let time = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()?,
    };
    (!time.is_zero() && time <= LONGEST).then_some(time)
}

fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value: f64 = number.parse().ok()?;
    let bytes = value * factor as f64;
    if !bytes.is_finite() || bytes < 0.0 || bytes >= u64::MAX as f64 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    Some(bytes.round() as u64)
}

/// A ratio as a percentage with one decimal, for example `74.9`.
pub fn percent(ratio: f64) -> String {
    decimal(ratio * 100.0, 1)
}

/// A number of zero or more with `digits` decimals, rounded half up. Tables
/// hold thousands of them, and this is several times faster than the exact
/// formatting of floats.
pub fn decimal(value: f64, digits: u32) -> String {
    let scale = 10u64.pow(digits.min(9));
    let scaled = value * scale as f64 + 0.5;
    let width = digits as usize;
    if !scaled.is_finite() || !(0.0..1e18).contains(&scaled) {
        return format!("{value:.width$}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range; the fraction is meant to go"
    )]
    let scaled = scaled as u64;
    if digits == 0 {
        return scaled.to_string();
    }
    format!("{}.{:0width$}", scaled / scale, scaled % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_significant_digits() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "0.98K"),
            (1023, "1.00K"),
            (1024, "1.00K"),
            (32_768, "32.0K"),
            (2_600_960, "2.48M"),
            (1_047_552, "1.00M"),
            (47_008_407_552, "43.8G"),
            (u64::MAX, "16.0E"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes, Scale::Iec), text, "{bytes}");
        }
        assert_eq!(size(2_600_960, Scale::Si), "2.60MB");
        assert_eq!(size(2_600_960, Scale::Bytes), "2600960");
    }

    #[test]
    fn counts_are_decimal() {
        assert_eq!(parse_count("2K"), Some(2000));
        assert_eq!(parse_count("1.5M"), Some(1_500_000));
        assert_eq!(parse_count("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "K", "-1", "1e5x", "10KB", "nan", "inf", "99999999999G"] {
            assert_eq!(parse_count(bad), None, "{bad}");
        }
    }

    #[test]
    fn decimals_are_rounded_as_people_do() {
        assert_eq!(decimal(0.749, 4), "0.7490");
        assert_eq!(decimal(99.95, 1), "100.0");
        assert_eq!(decimal(0.05, 1), "0.1");
        assert_eq!(decimal(0.0, 0), "0");
        assert_eq!(decimal(-1.5, 1), "-1.5");
        assert_eq!(decimal(f64::NAN, 1), "NaN");
        assert_eq!(decimal(1e300, 1).len(), 303);
    }

    #[test]
    fn times_from_habit() {
        assert_eq!(parse_time("10s"), Some(Duration::from_secs(10)));
        assert_eq!(parse_time("2"), Some(Duration::from_secs(2)));
        assert_eq!(parse_time("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(parse_time("1h30m"), Some(Duration::from_secs(5400)));
        for bad in ["", "0", "0s", "-1s", "soon", "1e400", "1e19", "nan"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn people_may_write_either_kind_of_unit() {
        assert_eq!(parse_size("10M"), Some(10 << 20));
        assert_eq!(parse_size("10MB"), Some(10_000_000));
        assert_eq!(parse_size("1.5GiB"), Some(3 << 29));
        assert_eq!(parse_size("512"), Some(512));
        for bad in ["", "M", "ten", "1.2.3K", "-1", "10X", "99999999999999T"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
