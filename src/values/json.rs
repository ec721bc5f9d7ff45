//! JSON, and the schema version that its top level carries.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::OTHER_VERSION;

/// Longest text of a schema version: that of a date. A longer number is somebody's data.
const MOST_VERSION_BYTES: usize = 10;

/// Whether what begins as JSON does is well-formed; `None` for anything else. A string must be whole to be taken for JSON, and what is no
/// text, too.
pub fn parsed(bytes: &[u8], is_text: bool) -> Option<bool> {
    let first = bytes.trim_ascii_start().first()?;
    match (first, is_well_formed(bytes)) {
        (b'{' | b'[' | b'"', true) => Some(std::str::from_utf8(bytes).is_ok()),
        (b'{' | b'[', false) if is_text => Some(false),
        _ => None,
    }
}

/// One value and white space. Neither recurses nor keeps what it reads.
fn is_well_formed(bytes: &[u8]) -> bool {
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[' | b'"')) {
        return false;
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    IgnoredAny::deserialize(&mut json).and_then(|_| json.end()).is_ok()
}

/// The member `v` of the top-level object, else `version`: a number such as `3`, `1.2` or `v3`, or [`OTHER_VERSION`].
pub fn schema_version(bytes: &[u8]) -> Option<Box<str>> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    json.deserialize_any(TopLevel).ok().flatten()
}

/// A version as it may be shown.
fn shown(text: &str) -> Box<str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_version = text.strip_prefix('v').is_some_and(is_number) || text.split('.').all(is_number);
    if is_version && text.len() <= MOST_VERSION_BYTES { text.into() } else { OTHER_VERSION.into() }
}

struct TopLevel;

impl<'de> Visitor<'de> for TopLevel {
    type Value = Option<Box<str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut v, mut version) = (None, None);
        while let Some(name) = members.next_key()? {
            match name {
                Name::V => v = Some(members.next_value::<Version>()?.0),
                Name::Version => version = Some(members.next_value::<Version>()?.0),
                Name::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(v.or(version))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _elements: A) -> Result<Self::Value, A::Error> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _text: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// The name of a member.
enum Name {
    V,
    Version,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl Visitor<'_> for Names {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "v" => Name::V,
                    "version" => Name::Version,
                    _ => Name::Other,
                })
            }
        }

        deserializer.deserialize_identifier(Names)
    }
}

/// What stands in the place of a version.
struct Version(Box<str>);

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Versions;

        impl<'de> Visitor<'de> for Versions {
            type Value = Version;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Version, E> {
                Ok(Version(shown(&number.to_string())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Version, E> {
                Ok(Version(shown(&number.to_string())))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Version, E> {
                Ok(Version(shown(&number.to_string())))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
                Ok(Version(shown(text)))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Version, E> {
                Ok(Version(OTHER_VERSION.into()))
            }

            fn visit_unit<E: Error>(self) -> Result<Version, E> {
                Ok(Version(OTHER_VERSION.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Version, A::Error> {
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Version(OTHER_VERSION.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Version, A::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Version(OTHER_VERSION.into()))
            }
        }

        deserializer.deserialize_any(Versions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, format};
    use super::*;

    #[test]
    fn well_formed_or_not() {
        for text in ["{}", "[]", "[1,2.5e3,null,true]", " {\"a\":{\"b\":[\"\\u00e9\"]}}\n", "\"a string\""] {
            assert_eq!(format(text.as_bytes()), (Format::Json, true), "{text}");
        }
        for text in ["{", "{a:1}", "[1,]", "{\"a\":1", "{\"a\":1}x", "{shop-7}", "[INFO] started"] {
            assert_eq!(format(text.as_bytes()), (Format::Json, false), "{text}");
        }
        // Half a string is a text, and what is neither JSON nor a text is binary.
        assert_eq!(format(b"\"half").0, Format::Text);
        assert_eq!(format(b"{\xff\xfe\x00").0, Format::Binary);
        // JSON is UTF-8.
        assert_eq!(format(b"{\"name\":\"\xc9\xcc\xb5\xea\"}"), (Format::Json, false));
        let deep = [vec![b'['; 1_000_000], vec![b']'; 1_000_000]].concat();
        assert_eq!(format(&deep), (Format::Json, true));
        assert_eq!(format(&deep[..1_999_999]), (Format::Json, false));
    }

    #[test]
    fn versions_of_the_top_level() {
        let of = |text: &str| schema_version(text.as_bytes()).map(String::from);
        let some = |text: &str| Some(text.to_string());
        assert_eq!(of("{\"v\":2}"), some("2"));
        assert_eq!(of("{\"a\":{\"v\":1},\"version\":\"1.2.3\"}"), some("1.2.3"));
        assert_eq!(of("{\"version\":1,\"v\":\"v7\"}"), some("v7"), "v goes before version");
        assert_eq!(of("{\"v\":1.5}"), some("1.5"));
        assert_eq!(of("{\"a\":{\"v\":1}}"), None);
        assert_eq!((of("[{\"v\":1}]"), of("\"v\"")), (None, None));
        for value in ["\"alice\"", "-1", "13800000002", "\"2026-11-30\"", "{\"x\":[1]}", "[1]", "null", "true", "\"1.\"", "\"\""]
        {
            assert_eq!(of(&format!("{{\"v\":{value}}}")), some(OTHER_VERSION), "{value}");
        }
    }
}
