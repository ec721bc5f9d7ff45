//! Moments as text: RFC 3339 in UTC, by `humantime`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Last second of the year 9999, the last that RFC 3339 can name.
const LAST_SECOND: u64 = 253_402_300_799;

/// `2026-08-19T17:00:00Z`; `None` outside 1970 to 9999.
pub fn rfc3339(unix_ms: i64) -> Option<String> {
    Some(humantime::format_rfc3339_seconds(moment(unix_ms)?).to_string())
}

/// `2026-08-19T17:00:00.123Z`; `None` outside 1970 to 9999.
pub fn rfc3339_millis(unix_ms: i64) -> Option<String> {
    Some(humantime::format_rfc3339_millis(moment(unix_ms)?).to_string())
}

/// Unix milliseconds of a moment given as RFC 3339 or as Unix seconds.
///
/// # Errors
/// Says which forms are read.
pub fn parse(text: &str) -> Result<i64, String> {
    let number = text.parse::<u64>().ok();
    if number.is_some_and(|seconds| seconds > LAST_SECOND) {
        return Err(format!("'{text}' is no time in seconds; is it in milliseconds?"));
    }
    let seconds = number.and_then(|seconds| i64::try_from(seconds * 1000).ok());
    let calendar = || {
        let at = humantime::parse_rfc3339_weak(text).ok()?;
        i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    seconds.or_else(calendar).ok_or_else(|| format!("'{text}' is no time: give 2026-01-31T06:00:00Z or Unix seconds"))
}

/// As Python's `datetime.isoformat` writes it in UTC, without zone: `2026-08-19T17:00:00.123000`, the fraction only where there is one.
pub fn isoformat(unix_ms: i64) -> Option<String> {
    let text = rfc3339_millis(unix_ms)?;
    let plain = text.strip_suffix('Z')?;
    Some(plain.strip_suffix(".000").map_or_else(|| format!("{plain}000"), Into::into))
}

fn moment(unix_ms: i64) -> Option<SystemTime> {
    let ms = u64::try_from(unix_ms).ok().filter(|ms| ms / 1000 <= LAST_SECOND)?;
    UNIX_EPOCH.checked_add(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time() {
        assert_eq!(parse("1767225600"), Ok(1_767_225_600_000));
        assert_eq!(parse("2026-01-01T00:00:00Z"), Ok(1_767_225_600_000));
        assert!(parse("yesterday").is_err());
        assert!(parse("-5").is_err());
        assert!(parse("1767225600000").is_err_and(|why| why.contains("milliseconds")));
        assert_eq!(rfc3339(1_767_225_600_000).as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(rfc3339(-1), None);
        assert_eq!(rfc3339(i64::MAX), None);
    }
}
