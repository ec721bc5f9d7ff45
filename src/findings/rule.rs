//! Every rule: its id, its kind, how grave a breach is unless the contracts say otherwise, and what to do about it.

use std::fmt;
use std::str::FromStr;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// To be put right.
    Warning,
    /// Broken.
    Error,
}

impl Severity {
    /// As files and tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Severity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Note, Self::Warning, Self::Error]
            .into_iter()
            .find(|severity| severity.name() == text)
            .ok_or_else(|| format!("no severity '{text}': use error, warning or note"))
    }
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// How long keys live.
    Lifetime,
    /// How large keys and classes are.
    Size,
    /// What names look like.
    Name,
    /// Personal data in names.
    PersonalData,
    /// Types and encodings.
    Type,
    /// Databases, slots and hash tags.
    Placement,
    /// Versions in names.
    Version,
    /// Classes without a contract.
    Unregistered,
    /// The contracts file itself.
    Contract,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Lifetime,
        Self::Size,
        Self::Name,
        Self::PersonalData,
        Self::Type,
        Self::Placement,
        Self::Version,
        Self::Unregistered,
        Self::Contract,
    ];

    /// As files and tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lifetime => "lifetime",
            Self::Size => "size",
            Self::Name => "name",
            Self::PersonalData => "personal-data",
            Self::Type => "type",
            Self::Placement => "placement",
            Self::Version => "version",
            Self::Unregistered => "unregistered",
            Self::Contract => "contract",
        }
    }
}

macro_rules! rules {
    ($($rule:ident $id:literal $kind:ident $severity:ident $title:literal $fix:literal;)*) => {
        /// A rule that keys, classes or the contracts can break.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("`", $id, "`: ", $title, ".")] $rule,)*
        }

        impl Rule {
            /// Every rule, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Its id, which never changes.
            pub fn id(self) -> &'static str {
                match self { $(Self::$rule => $id),* }
            }

            /// What it is about.
            pub fn kind(self) -> Kind {
                match self { $(Self::$rule => Kind::$kind),* }
            }

            /// How grave a breach is unless the contracts say otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Self::$rule => Severity::$severity),* }
            }

            /// What is wrong, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$rule => $title),* }
            }

            /// What to do about it, in a sentence.
            pub fn fix(self) -> &'static str {
                match self { $(Self::$rule => $fix),* }
            }
        }
    };
}

rules! {
    TtlLost "ttl-lost" Lifetime Error "keys without expiry in a class whose keys expire"
        "find the write that drops the TTL (SET without KEEPTTL, RENAME, PERSIST) and give these keys an expiry";
    PermanentUnregistered "permanent-unregistered" Lifetime Warning "keys without expiry that no contract allows"
        "set a TTL, or register the class as permanent with ttl, owner, source, delete, budget.keys, backup and rebuild";
    RegisterIncomplete "register-incomplete" Lifetime Warning "a permanent class whose contract lacks what the register asks for"
        "fill in the fields that are named";
    TtlUnexpected "ttl-unexpected" Lifetime Warning "keys that expire in a class agreed to be permanent"
        "remove the expiry, or agree on a TTL";
    TtlAboveMax "ttl-above-max" Lifetime Warning "more time left than the longest TTL agreed"
        "set the agreed TTL when writing, or raise ttl.max";
    TtlBelowMin "ttl-below-min" Lifetime Warning "no key has as much time left as the shortest TTL agreed"
        "set the agreed TTL when writing, or lower ttl.min";
    TtlUnit "ttl-unit" Lifetime Error "time left is about 1000 times, or a thousandth, of what was agreed"
        "look for seconds passed where milliseconds are meant (PEXPIRE, PX) or the reverse";
    ExpiryAligned "expiry-aligned" Lifetime Warning "many keys expire in the same second or minute"
        "add jitter to the TTL, so that keys written together do not expire together";
    ExpiredKeys "expired-keys" Lifetime Note "expired keys are still in the dump"
        "a server drops them when it loads the dump; many of them mean that expiry falls behind: raise hz or active-expire-effort";
    StringTooLong "string-too-long" Size Warning "string values above the limit"
        "split or compress the value, keep it elsewhere, or raise limits.string_bytes";
    MemberTooLong "member-too-long" Size Warning "elements above the limit of bytes"
        "keep large elements in keys of their own, or raise limits.member_bytes";
    ElementsTooMany "elements-too-many" Size Warning "more elements than the limit"
        "split the key by a part of its id or by time, trim it, or raise limits.elements";
    MemoryTooLarge "memory-too-large" Size Warning "keys that take more memory than the limit"
        "split the key, or raise limits.memory_bytes";
    BacklogTooLong "backlog-too-long" Size Warning "streams with more entries pending than the limit"
        "look for consumers that died or do not acknowledge; claim or drop what they hold, or raise limits.pending";
    BudgetKeys "budget-keys" Size Warning "more keys than the budget's peak"
        "find out what grew, or agree on a larger budget.keys";
    BudgetMemory "budget-memory" Size Warning "more memory than the budget's peak"
        "find out what grew, or agree on a larger budget.memory_bytes";
    NameSpace "name-space" Name Warning "spaces in names"
        "build names from trimmed, encoded parts";
    NameControl "name-control" Name Warning "control bytes in names"
        "strip line ends and other control bytes from what goes into a name";
    NameQuote "name-quote" Name Warning "quotes in names"
        "a value was quoted before it went into the name: use the bare value";
    NameUppercase "name-uppercase" Name Warning "uppercase words in names"
        "write the words of names in lower case: names differ by case, and so do the keys";
    NameNonAscii "name-non-ascii" Name Warning "letters outside ASCII in names"
        "use ids or transliterated words in names";
    NameTooLong "name-too-long" Name Warning "names above the limit of bytes"
        "shorten the words or hash the long part, or raise limits.key_bytes";
    SegmentEmpty "segment-empty" Name Warning "empty segments in names"
        "a part was empty when the name was built: refuse to build such names";
    SegmentMissing "segment-missing" Name Warning "names that lack a segment of a contract's pattern"
        "put the missing part into the name, or write a contract for these keys";
    SegmentUnknown "segment-unknown" Name Warning "names with a value that a contract's segment does not allow"
        "correct the value, or add it under [segments]";
    NameNoNamespace "name-no-namespace" Name Warning "names of one segment, without namespace"
        "put the name of the application or team in front";
    NameAbbreviated "name-abbreviated" Name Note "names whose words are all abbreviations"
        "spell out the words, or describe them in a contract; the memory saved is in advice.csv";
    PersonalData "personal-data" PersonalData Error "personal data in names"
        "use an internal id or a keyed hash of it: names appear in logs, MONITOR and SLOWLOG";
    TypeMixed "type-mixed" Type Warning "a class holds keys of more than one type"
        "give each type its own class, or agree on a list of types";
    TypeUnexpected "type-unexpected" Type Error "keys of another type than agreed"
        "find the writer of the other type, or change type in the contract";
    EncodingConverted "encoding-converted" Type Note "keys that have just outgrown their compact encoding"
        "trim or split the keys, or raise the encoding limit that advice.csv names";
    TagHot "tag-hot" Placement Warning "one hash tag holds far more keys than chance explains"
        "make the tag finer, so that it holds what must be changed together and no more";
    SlotHot "slot-hot" Placement Warning "one slot holds far more keys than chance explains"
        "see which hash tags share the slot, and make them finer";
    DbUnexpected "db-unexpected" Placement Warning "keys in a database that is not agreed"
        "move the keys (MOVE, SELECT in the client's settings), or add the database to limits.databases";
    BracesUnbalanced "braces-unbalanced" Placement Warning "braces that open or close no hash tag"
        "correct the braces: without a pair the whole name is hashed, and related keys part";
    TagDiffers "tag-differs" Placement Warning "names like those of a contract with another hash tag, or none"
        "put the braces where the contract has them";
    VersionOld "version-old" Version Warning "keys of an old version beside the current one"
        "let them expire, or delete those that never will";
    ClassUnregistered "class-unregistered" Unregistered Warning "a class that no contract names"
        "write a contract for it (`contract discover` drafts one), or delete the keys";
    ContractTodo "contract-todo" Contract Warning "a contract with fields still to be filled in"
        "replace TODO";
    PatternUnmatched "pattern-unmatched" Contract Warning "a pattern that matches no key"
        "correct the pattern, or remove the class";
}

impl FromStr for Rule {
    type Err = ();

    fn from_str(id: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|rule| rule.id() == id).ok_or(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// What contracts say of the severity of rules; `None` where a rule is switched off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Severities(Vec<(Rule, Option<Severity>)>);

impl Severities {
    /// Changes the rule called `name`, or all rules of the kind of that name; a rule's own entry goes before that of its kind.
    ///
    /// # Errors
    /// A name that neither a rule nor a kind has.
    pub fn set(&mut self, name: &str, severity: Option<Severity>) -> Result<(), String> {
        let as_kind: Vec<Rule> = Rule::ALL.iter().copied().filter(|rule| rule.kind().name() == name).collect();
        match name.parse::<Rule>() {
            Ok(rule) => {
                self.0.retain(|(known, _)| *known != rule);
                self.0.push((rule, severity));
            }
            Err(()) if as_kind.is_empty() => return Err(format!("no rule '{name}'")),
            Err(()) => {
                for rule in as_kind {
                    if self.of(rule).is_none() {
                        self.0.push((rule, severity));
                    }
                }
            }
        }
        Ok(())
    }

    /// What is said of `rule`: nothing, switched off, or a severity.
    pub fn of(&self, rule: Rule) -> Option<Option<Severity>> {
        self.0.iter().find(|(known, _)| *known == rule).map(|(_, severity)| *severity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_goes_before_its_kind_in_any_order() {
        for order in [["name", "name-space"], ["name-space", "name"]] {
            let mut severities = Severities::default();
            for name in order {
                let severity = (name == "name-space").then_some(Severity::Error);
                severities.set(name, severity).expect("a known name");
            }
            assert_eq!(severities.of(Rule::NameSpace), Some(Some(Severity::Error)));
            assert_eq!(severities.of(Rule::NameQuote), Some(None));
            assert_eq!(severities.of(Rule::PersonalData), None);
        }
        assert_eq!(Severities::default().set("names", None), Err("no rule 'names'".into()));
    }

    #[test]
    fn ids_are_unique_and_none_is_the_name_of_another_kind() {
        for (at, rule) in Rule::ALL.iter().enumerate() {
            assert!(Rule::ALL[..at].iter().all(|other| other.id() != rule.id()), "{rule}");
            assert!(Kind::ALL.iter().all(|kind| kind.name() != rule.id() || *kind == rule.kind()), "{rule}");
        }
    }
}
