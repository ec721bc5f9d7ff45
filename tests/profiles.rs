//! The data sets of the generator are whole dumps, the same every time, and as large as asked for.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/profiles.rs"]
mod profiles;
#[path = "support/writer.rs"]
mod writer;

use std::io::Write as _;

use profiles::Profile;
use rdbscope::analyse::{self, Dump, Options};
use rdbscope::input::Input;
use rdbscope::scan::ChecksumState;

#[track_caller]
fn check(profile: Profile, keys: u64, seed: u64, compress: bool) {
    let finished = profile.write(Vec::new(), keys, seed, compress).unwrap();
    let again = profile.write(Vec::new(), keys, seed, compress).unwrap();
    assert!(finished.out == again.out, "not the same bytes");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&finished.out).unwrap();
    let options = Options::default();
    let dump = [Dump::new(Input::open(file.path()).unwrap(), &options).unwrap()];
    let (census, outcomes) = analyse::census(&dump, &options, |_| ());
    let outcome = &outcomes[0];
    assert!(!outcome.is_partial(), "{:?} {:?}", outcome.end, outcome.passed.value_faults);
    assert_eq!(outcome.end.checksum, ChecksumState::Ok);
    assert_eq!(outcome.passed.framing_bytes, finished.framing_bytes);
    let total = census.total();
    assert_eq!(total.keys, finished.keys);
    let first = census.databases[&0];
    // All expiries are after the save.
    assert_eq!(dump[0].head.first_database, Some((first.keys, first.keys - first.permanent_keys - first.expired_keys)));
    assert_eq!((first.keys, total.expired_keys), (keys, 0));
}

#[test]
fn small_strings() {
    check(Profile::SmallKv, 5000, 1, true);
    check(Profile::SmallKv, 1, 2, false);
}

#[test]
fn every_type() {
    check(Profile::Mixed, 4000, 1, true);
    check(Profile::Mixed, 1000, 3, false);
}

#[test]
fn large_values() {
    check(Profile::BigValues, 14, 1, true);
    check(Profile::BigValues, 3, 1, true);
}

#[test]
fn no_keys() {
    let finished = Profile::SmallKv.write(Vec::new(), 0, 1, true).unwrap();
    assert_eq!((finished.keys, finished.bytes), (0, finished.framing_bytes));
}
