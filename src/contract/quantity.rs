//! Sizes and durations as people write them.

use std::time::Duration;

/// Bytes of a size as redis.conf reads them, in any case: `k`, `m`, `g` are powers of 1000, `kb`, `mb`, `gb` and `KiB`, `MiB`, `GiB` powers of
/// 1024; a bare number is bytes.
///
/// # Errors
/// Says which forms are read.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" => Some(1000),
        "m" => Some(1_000_000),
        "g" => Some(1_000_000_000),
        "kb" | "kib" => Some(1 << 10),
        "mb" | "mib" => Some(1 << 20),
        "gb" | "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    bytes.ok_or_else(|| format!("'{text}' is no size: write 512, 10KB (10,240 bytes), 10k (10,000), 1mb or 64gb"))
}

/// A duration such as `120s`, `30d` or `1h 30m`.
///
/// # Errors
/// Says which forms are read.
pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| format!("'{text}' is no duration: write 120s, 15m, 6h or 30d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_redis_conf_reads_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("10KB", 10_240),
            ("10kb", 10_240),
            ("10k", 10_000),
            ("1mb", 1 << 20),
            ("1m", 1_000_000),
            ("64gb", 64 << 30),
            ("2GiB", 2 << 30),
            ("3 MiB", 3 << 20),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "kb", "-1", "1.5kb", "10kbb", "99999999999gb"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert!(duration("soon").is_err());
    }
}
