//! What a placeholder in a pattern may stand for.

/// A typed placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Decimal digits.
    Digits,
    /// Decimal digits, perhaps with a minus sign.
    Int,
    /// UUID with its dashes, any case.
    Uuid,
    /// ULID: 26 characters of Crockford's base 32, upper case.
    Ulid,
    /// Hexadecimal digits, so many or any number of them.
    Hex(Option<u16>),
    /// Letters of any alphabet, digits, `_`, `-`, `.`.
    Slug,
    /// `2026-08-19` or `20260819`.
    Date,
    /// A date and an hour: `2026-08-19T17` or `2026081917`.
    Hour,
    /// `2026-W34`.
    Week,
    /// `2026-08`.
    Month,
    /// `v2`, `2` or `1.22.3`.
    Version,
    /// Letters, digits, `_`, `-` of base64url, with padding or without.
    Base64Url,
    /// E-mail address.
    Email,
    /// `+` and 8 to 15 digits, or a Chinese mobile number.
    Phone,
    /// IPv4 or IPv6 address.
    Ip,
    /// Anything but nothing.
    Any,
}

/// How narrow a segment is; of two patterns that match a key the narrower wins, segment by segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Narrowness {
    /// Literal text.
    Literal,
    /// One of a list.
    Enumeration,
    /// Literal text and placeholders; the more text, the narrower.
    Mixed(std::cmp::Reverse<usize>),
    /// A calendar unit or a version.
    Calendar,
    /// An identifier of a fixed form.
    Form,
    /// Digits.
    Digits,
    /// Digits with a sign.
    Int,
    /// A word or token.
    Token,
    /// Anything.
    Any,
    /// Any number of segments.
    Rest,
}

const YEAR: &str = "(?:19[7-9][0-9]|20[0-9][0-9])";
const MONTH: &str = "(?:0[1-9]|1[0-2])";
const DAY: &str = "(?:0[1-9]|[12][0-9]|3[01])";
const HOUR: &str = "(?:[01][0-9]|2[0-3])";

impl Type {
    /// The type that `name` means in a pattern, such as `digits` or `hex(16)`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "digits" => Self::Digits,
            "int" => Self::Int,
            "uuid" => Self::Uuid,
            "ulid" => Self::Ulid,
            "hex" => Self::Hex(None),
            "slug" => Self::Slug,
            "date" => Self::Date,
            "hour" => Self::Hour,
            "week" => Self::Week,
            "month" => Self::Month,
            "version" => Self::Version,
            "base64url" => Self::Base64Url,
            "email" => Self::Email,
            "phone" => Self::Phone,
            "ip" => Self::Ip,
            "any" | "*" => Self::Any,
            _ => {
                let n = name.strip_prefix("hex(")?.strip_suffix(')')?.parse().ok()?;
                return (1..=512).contains(&n).then_some(Self::Hex(Some(n)));
            }
        })
    }

    /// The names that [`Self::named`] knows, for messages.
    pub const NAMES: &'static str =
        "digits, int, uuid, ulid, hex, hex(n), slug, date, hour, week, month, version, base64url, email, phone, ip, any or *";

    /// One name of each, for suggestions.
    pub const EXAMPLES: [&'static str; 16] = [
        "digits",
        "int",
        "uuid",
        "ulid",
        "hex",
        "slug",
        "date",
        "hour",
        "week",
        "month",
        "version",
        "base64url",
        "email",
        "phone",
        "ip",
        "any",
    ];

    /// A regular expression over bytes for what it matches.
    pub fn regex(self) -> String {
        match self {
            Self::Digits => "[0-9]+".into(),
            Self::Int => "-?[0-9]+".into(),
            Self::Uuid => "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}".into(),
            Self::Ulid => "[0-7][0-9A-HJKMNP-TV-Z]{25}".into(),
            Self::Hex(None) => "[0-9a-fA-F]+".into(),
            Self::Hex(Some(n)) => format!("[0-9a-fA-F]{{{n}}}"),
            Self::Slug => r"[0-9A-Za-z_.\x80-\xff-]+".into(),
            Self::Date => format!("(?:{YEAR}-{MONTH}-{DAY}|{YEAR}_{MONTH}_{DAY}|{YEAR}[.]{MONTH}[.]{DAY}|{YEAR}{MONTH}{DAY})"),
            Self::Hour => format!("(?:{YEAR}-{MONTH}-{DAY}[Tt_-]{HOUR}|{YEAR}{MONTH}{DAY}{HOUR})"),
            Self::Week => format!("{YEAR}-[Ww](?:0[1-9]|[1-4][0-9]|5[0-3])"),
            Self::Month => format!("{YEAR}-{MONTH}"),
            Self::Version => "v?[0-9]+(?:[.][0-9]+){0,3}".into(),
            Self::Base64Url => "[0-9A-Za-z_-]+={0,2}".into(),
            Self::Email => r"[0-9A-Za-z_.%+\x80-\xff-]+@[0-9A-Za-z\x80-\xff-]+(?:[.][0-9A-Za-z\x80-\xff-]+)+".into(),
            Self::Phone => "(?:[+][0-9]{8,15}|1[3-9][0-9]{9})".into(),
            Self::Ip => "(?:[0-9]{1,3}(?:[.][0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)".into(),
            Self::Any => r"[\x00-\xff]+".into(),
        }
    }

    /// How narrow a segment of this type alone is.
    pub fn narrowness(self) -> Narrowness {
        match self {
            Self::Date | Self::Hour | Self::Week | Self::Month | Self::Version => Narrowness::Calendar,
            Self::Uuid | Self::Ulid | Self::Hex(_) | Self::Email | Self::Phone | Self::Ip => Narrowness::Form,
            Self::Digits => Narrowness::Digits,
            Self::Int => Narrowness::Int,
            Self::Slug | Self::Base64Url => Narrowness::Token,
            Self::Any => Narrowness::Any,
        }
    }
}
