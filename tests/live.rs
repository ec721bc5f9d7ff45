//! What is said of a dump against what live servers say once they have loaded it.
//!
//! A server is filled with data made on the spot, saves it, and is started again on its dump. Every key is then read back and held
//! against `rdbscope keys`; no difference is allowed. Servers are named by environment variables, else looked for on PATH; a test
//! whose server is absent says so and passes, unless `RDBSCOPE_REQUIRE_LIVE=1` is set. `RDBSCOPE_LIVE_SEED` makes other data.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[path = "support/accuracy.rs"]
#[allow(dead_code)]
mod accuracy;
#[path = "support/live_data.rs"]
mod live_data;
#[path = "support/live_memory.rs"]
mod live_memory;
#[path = "support/live.rs"]
mod live_support;
#[path = "support/resp.rs"]
mod resp;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command as Process;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use live_data::{DATABASES, Data};
use live_memory::{compare_memory, compare_used_memory, free_unaccounted, memory, used_memory};
use live_support::{
    DUMP, REDIS_6_2, REDIS_7_0, REDIS_8_2, Server, VALKEY_9_1, Version, Wanted, allocator, free_port, info_field,
};
use resp::{Connection, Reply};
use serde_json::{Map, Value, json};

/// Fewest keys that a server must have been asked about.
const FEWEST_KEYS: usize = 10_000;

/// Fewest keys of each type in each encoding.
const FEWEST_OF_EACH: usize = 1000;

/// Differences that are printed.
const FIRST: usize = 10;

/// Clock and PTTL of a server without PEXPIRETIME may be this far from the expiry that was set, in milliseconds.
const CLOCK_SLACK: i64 = 1000;

#[test]
fn redis_6_2_says_the_same() {
    compare(REDIS_6_2, Slots::AreNotAsked);
}

#[test]
fn redis_7_0_says_the_same() {
    compare(REDIS_7_0, Slots::OfClusterNode);
}

#[test]
fn redis_8_2_says_the_same() {
    compare(REDIS_8_2, Slots::AreNotAsked);
}

#[test]
fn valkey_9_1_says_the_same() {
    compare(VALKEY_9_1, Slots::AreNotAsked);
}

/// Whether a cluster node is asked for the slot of each key; a server outside of a cluster refuses to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slots {
    AreNotAsked,
    OfClusterNode,
}

/// Database and bytes of a key.
type Place = (u64, Vec<u8>);

/// What is said of one key, under the names of the columns of `keys`.
type Facts = BTreeMap<&'static str, Value>;

fn compare(wanted: Wanted, slots: Slots) {
    let Some(program) = wanted.find_or_skip() else { return };
    let folder = tempfile::tempdir().unwrap();
    let seed = std::env::var("RDBSCOPE_LIVE_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("{} {}: seed {seed}", wanted.product, wanted.version);

    let server = Server::start(&program, folder.path(), &[]);
    let mut connection = server.connect();
    let version = Version::of(&mut connection);
    let data = Data::new(seed, &version);
    data.write(&mut connection);
    connection.run(&command!["SAVE"]);
    drop(server);

    let server = Server::start(&program, folder.path(), &[]);
    let mut connection = server.connect();
    // Before buffers for large commands and answers are in it.
    let used = used_memory(&mut connection);
    let mut loaded = read_back(&mut connection, &version, &data);
    // Before anything looks into the values: each look moves a growing table one step towards its end.
    let memory = memory(&mut connection, &loaded);
    add_field_expiries(&mut connection, &version, &mut loaded);
    add_stream_facts(&mut connection, &mut loaded);
    let totals = Totals::of_server(&mut connection, &loaded);
    let functions = version.from([7, 0], [7, 2]).then(|| functions_of_server(&mut connection));
    let allocator = allocator(&mut connection, &version);
    let unaccounted = free_unaccounted(&mut connection, &version, &loaded);
    drop(server);
    if slots == Slots::OfClusterNode {
        add_slots(&program, &mut loaded);
    }

    let dump = folder.path().join(DUMP);
    let mut rows = rows_of_keys(&dump, allocator);
    add_columns(&dump, &mut rows);
    compare_memory(&version, seed, &memory, &loaded, &rows);
    compare_used_memory(&version, &dump, allocator, used - unaccounted, &loaded, &rows);
    let differences = differences(&loaded, &rows);
    let total = differences.len();
    for difference in differences.iter().take(FIRST) {
        println!("live: {version}: {difference}");
    }
    println!("live: {version}: {} keys compared", loaded.len());
    println!("live: {version}: {}", encodings(&version, &loaded));
    assert_eq!(total, 0, "{version}: differences in {} keys, seed {seed}", loaded.len());
    assert!(loaded.len() >= FEWEST_KEYS, "{version}: only {} keys were compared", loaded.len());
    assert_eq!(Totals::of_report(&dump), totals, "{version}: totals of the report, seed {seed}");
    if let Some(functions) = functions {
        assert!(functions.len() >= 3, "{version}: only {} function libraries", functions.len());
        assert_eq!(functions_of_report(&dump), functions, "{version}: function libraries");
    }
}

/// A graph of a module that lies beside the server's program in its package: type and encoding, and every key behind it.
#[test]
fn redis_8_2_with_a_module_says_the_same() {
    let Some(program) = REDIS_8_2.find_or_skip() else { return };
    let module = program.with_file_name("falkordb.so");
    if !module.is_file() {
        return println!("skipped: no falkordb.so beside the server");
    }
    let folder = tempfile::tempdir().unwrap();
    let module = module.to_str().unwrap();
    let server = Server::start(&program, folder.path(), &["--loadmodule", module]);
    let mut connection = server.connect();
    for n in 0..20 {
        let nodes = format!("UNWIND range(0, {}) AS n CREATE (:Node {{n: n, name: 'node'}})-[:NEXT]->(:Other {{x: 1.5}})", n * n);
        connection.run(&command!["GRAPH.QUERY", format!("graph:{n:02}"), nodes]);
        connection.run(&command!["SET", format!("string:{n:02}"), "value"]);
    }
    connection.run(&command!["PEXPIREAT", "graph:03", "4102444800000"]);
    connection.run(&command!["SAVE"]);
    drop(server);

    let server = Server::start(&program, folder.path(), &["--loadmodule", module]);
    let mut connection = server.connect();
    let version = Version::of(&mut connection);
    let keys: Vec<Vec<u8>> = connection.run(&command!["KEYS", "*"]).array().into_iter().map(Reply::bulk).collect();
    let types = ask_of_each(&mut connection, &keys, |key| command!["TYPE", key]);
    let encodings = ask_of_each(&mut connection, &keys, |key| command!["OBJECT", "ENCODING", key]);
    let expiries = ask_of_each(&mut connection, &keys, |key| command!["PEXPIRETIME", key]);
    drop(server);
    let mut loaded = BTreeMap::new();
    for (key, ((key_type, encoding), expiry)) in keys.into_iter().zip(types.iter().zip(encodings).zip(expiries)) {
        let facts = Facts::from([
            ("type", json!(key_type.text())),
            ("encoding", json!(encoding.text())),
            ("expires_at_ms", json!(Some(expiry.integer()).filter(|at| *at != -1))),
        ]);
        loaded.insert((0, key), facts);
    }
    let dump = folder.path().join(DUMP);
    assert_eq!(differences(&loaded, &rows_of_keys(&dump, "jemalloc")), Vec::<String>::new(), "{version}");
    let graphs = loaded.values().filter(|facts| facts["type"] == "graphdata").count();
    assert_eq!((graphs, loaded.len()), (20, 40), "{version}");
    let report = tables(&dump, "modules.csv", &[]);
    let graph = report.iter().find(|row| row["module"] == "graphdata").unwrap();
    assert_eq!(graph["keys"], "20", "{version}: {graph:?}");
    println!("live: {version} with a module: {} keys compared, {graphs} of them graphs", loaded.len());
}

/// Columns that `keys` writes only when they are named.
const NAMED_COLUMNS: &str =
    "db,key_b64,hfe_fields,hfe_min_expire_ms,hfe_max_expire_ms,stream_groups,stream_consumers,stream_pending,stream_last_id";

/// Adds those columns.
fn add_columns(dump: &Path, rows: &mut BTreeMap<Place, Map<String, Value>>) {
    for line in rdbscope(&["keys", "--format", "jsonl", "--columns", NAMED_COLUMNS], dump).lines() {
        let named: Map<String, Value> = serde_json::from_str(line).unwrap();
        let place = (named["db"].as_u64().unwrap(), STANDARD.decode(named["key_b64"].as_str().unwrap()).unwrap());
        rows.get_mut(&place).unwrap().extend(named);
    }
}

/// What HPEXPIRETIME says of every field of every hash.
fn add_field_expiries(connection: &mut Connection, version: &Version, loaded: &mut BTreeMap<Place, Facts>) {
    if !version.from([7, 4], [9, 0]) {
        return;
    }
    let mut fields_with_expiry = 0;
    for db in DATABASES {
        connection.run(&command!["SELECT", db.to_string()]);
        let mut hashes: Vec<_> = loaded
            .iter_mut()
            .filter(|((at, _), facts)| *at == db && facts["type"] == "hash")
            .map(|((_, key), facts)| (key, facts))
            .collect();
        let ask = hashes.iter().map(|(key, _)| command!["HKEYS", key]).collect::<Vec<_>>();
        let fields = connection.pipeline(&ask);
        let ask = hashes.iter().zip(fields).map(|((key, _), fields)| {
            let fields: Vec<Vec<u8>> = fields.array().into_iter().map(Reply::bulk).collect();
            let mut command = command!["HPEXPIRETIME", key, "FIELDS", fields.len().to_string()];
            command.extend(fields);
            command
        });
        let expiries = connection.pipeline(&ask.collect::<Vec<_>>());
        for ((_, facts), expiries) in hashes.iter_mut().zip(expiries) {
            // -1: the field has none.
            let expiries: Vec<i64> = expiries.array().iter().map(Reply::integer).filter(|at| *at != -1).collect();
            fields_with_expiry += expiries.len();
            facts.insert("hfe_fields", json!(Some(expiries.len()).filter(|n| *n > 0)));
            facts.insert("hfe_min_expire_ms", json!(expiries.iter().min()));
            facts.insert("hfe_max_expire_ms", json!(expiries.iter().max()));
        }
    }
    assert!(fields_with_expiry >= 1000, "{version}: only {fields_with_expiry} fields with an expiry");
    println!("live: {version}: {fields_with_expiry} fields with an expiry");
}

/// What XINFO and XPENDING say of every stream.
fn add_stream_facts(connection: &mut Connection, loaded: &mut BTreeMap<Place, Facts>) {
    let mut pending_entries = 0;
    for db in DATABASES {
        connection.run(&command!["SELECT", db.to_string()]);
        for ((_, key), facts) in loaded.iter_mut().filter(|((at, _), facts)| *at == db && facts["type"] == "stream") {
            let info = connection.run(&command!["XINFO", "STREAM", key]).map();
            let groups: Vec<_> = connection.run(&command!["XINFO", "GROUPS", key]).array().into_iter().map(Reply::map).collect();
            let sum = |field: &str| groups.iter().map(|group| group[field].integer()).sum::<i64>();
            // Counted once more, by the entries themselves.
            let listed = |group: &BTreeMap<String, Reply>| {
                connection.run(&command!["XPENDING", key, group["name"].text(), "-", "+", "1000000"]).array().len() as i64
            };
            let listed: i64 = groups.iter().map(listed).sum();
            assert_eq!(listed, sum("pending"), "{}: pending entries", key.escape_ascii());
            pending_entries += listed;
            assert_eq!(info["groups"].integer(), groups.len() as i64);
            facts.insert("stream_groups", json!(groups.len()));
            facts.insert("stream_consumers", json!(sum("consumers")));
            facts.insert("stream_pending", json!(listed));
            facts.insert("stream_last_id", json!(info["last-generated-id"].text()));
        }
    }
    assert!(pending_entries >= 500, "only {pending_entries} pending entries");
}

/// A function library: name, engine, bytes of its code.
type Library = (String, String, usize);

fn functions_of_server(connection: &mut Connection) -> BTreeSet<Library> {
    let libraries = connection.run(&command!["FUNCTION", "LIST", "WITHCODE"]).array();
    let library = |reply: Reply| {
        let library = reply.map();
        // The server names the engine in capitals, the code in small letters.
        (library["library_name"].text(), library["engine"].text().to_lowercase(), library["library_code"].clone().bulk().len())
    };
    libraries.into_iter().map(library).collect()
}

fn functions_of_report(dump: &Path) -> BTreeSet<Library> {
    let library =
        |row: &BTreeMap<String, String>| (row["library"].clone(), row["engine"].to_lowercase(), row["bytes"].parse().unwrap());
    tables(dump, "functions.csv", &[]).iter().map(library).collect()
}

/// The rows of one table of the report.
fn tables(dump: &Path, name: &str, options: &[&str]) -> Vec<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().unwrap();
    rdbscope(&[&["report", "-o", folder.path().to_str().unwrap()], options].concat(), dump);
    let mut reader = csv::Reader::from_path(folder.path().join(name)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// What the server says of all its keys.
fn read_back(connection: &mut Connection, version: &Version, data: &Data) -> BTreeMap<Place, Facts> {
    let mut loaded = BTreeMap::new();
    for db in DATABASES {
        connection.run(&command!["SELECT", db.to_string()]);
        let keys: Vec<Vec<u8>> = connection.run(&command!["KEYS", "*"]).array().into_iter().map(Reply::bulk).collect();
        let types = ask_of_each(connection, &keys, |key| command!["TYPE", key]);
        let encodings = ask_of_each(connection, &keys, |key| command!["OBJECT", "ENCODING", key]);
        let types: Vec<String> = types.iter().map(Reply::text).collect();
        let counts = keys.iter().zip(&types).map(|(key, key_type)| command![count_command(key_type), key]).collect::<Vec<_>>();
        let counts = connection.pipeline(&counts);
        let expiries = expiries(connection, version, data, db, &keys);
        let facts = types.iter().zip(encodings).zip(counts).zip(expiries);
        for (key, (((key_type, encoding), count), expires_at_ms)) in keys.iter().zip(facts) {
            let count_column = if key_type == "string" { "payload_bytes" } else { "elements" };
            let facts = Facts::from([
                ("type", json!(key_type)),
                ("encoding", json!(encoding.text())),
                (count_column, json!(count.integer())),
                ("expires_at_ms", json!(expires_at_ms)),
            ]);
            loaded.insert((db, key.clone()), facts);
        }
    }
    loaded
}

fn ask_of_each(connection: &mut Connection, keys: &[Vec<u8>], command: impl Fn(&[u8]) -> resp::Command) -> Vec<Reply> {
    connection.pipeline(&keys.iter().map(|key| command(key)).collect::<Vec<_>>())
}

/// The command that counts what is in a value; of a string, its bytes.
fn count_command(key_type: &str) -> &'static str {
    match key_type {
        "string" => "STRLEN",
        "list" => "LLEN",
        "set" => "SCARD",
        "hash" => "HLEN",
        "zset" => "ZCARD",
        "stream" => "XLEN",
        "vectorset" => "VCARD",
        other => panic!("type {other}"),
    }
}

/// The expiries. Servers before 7.0 tell only what is left: there the expiry is the one that was set, once clock and PTTL agree with it.
fn expiries(connection: &mut Connection, version: &Version, data: &Data, db: u64, keys: &[Vec<u8>]) -> Vec<Option<i64>> {
    if version.from([7, 0], [7, 0]) {
        let replies = ask_of_each(connection, keys, |key| command!["PEXPIRETIME", key]);
        return replies.iter().map(|reply| Some(reply.integer()).filter(|at| *at != -1)).collect();
    }
    let begin = clock(connection);
    let left = ask_of_each(connection, keys, |key| command!["PTTL", key]);
    let end = clock(connection);
    let expiry = |(key, left): (&Vec<u8>, Reply)| {
        let set = data.expiry(db, key);
        let left = Some(left.integer()).filter(|left| *left != -1);
        assert_eq!(set.is_some(), left.is_some(), "{}: an expiry was set, or none is left", key.escape_ascii());
        let now = set.zip(left).map(|(set, left)| set - left);
        let agrees = now.is_none_or(|now| (begin - CLOCK_SLACK..=end + CLOCK_SLACK).contains(&now));
        assert!(agrees, "{}: the server has {left:?} ms left at {begin}, {set:?} was set", key.escape_ascii());
        set
    };
    keys.iter().zip(left).map(expiry).collect()
}

/// The server's clock in Unix milliseconds.
fn clock(connection: &mut Connection) -> i64 {
    let parts: Vec<i64> = connection.run(&command!["TIME"]).array().iter().map(|part| part.text().parse().unwrap()).collect();
    parts[0] * 1000 + parts[1] / 1000
}

/// Adds what an empty cluster node says of each key's slot.
fn add_slots(program: &Path, loaded: &mut BTreeMap<Place, Facts>) {
    let folder = tempfile::tempdir().unwrap();
    let bus = free_port().to_string();
    let server = Server::start(program, folder.path(), &["--cluster-enabled", "yes", "--cluster-port", &bus]);
    let commands: Vec<_> = loaded.keys().map(|(_, key)| command!["CLUSTER", "KEYSLOT", key]).collect();
    let replies = server.connect().pipeline(&commands);
    for (facts, slot) in loaded.values_mut().zip(replies) {
        facts.insert("slot", json!(slot.integer()));
    }
}

/// The rows that `keys` writes, each key once.
fn rows_of_keys(dump: &Path, allocator: &str) -> BTreeMap<Place, Map<String, Value>> {
    let output = rdbscope(&["keys", "--format", "jsonl", "--allocator", allocator], dump);
    let mut rows = BTreeMap::new();
    for line in output.lines() {
        let row: Map<String, Value> = serde_json::from_str(line).unwrap();
        let place = (row["db"].as_u64().unwrap(), STANDARD.decode(row["key_b64"].as_str().unwrap()).unwrap());
        let twice = rows.insert(place, row);
        assert!(twice.is_none(), "two rows for one key: {line}");
    }
    rows
}

fn rdbscope(args: &[&str], dump: &Path) -> String {
    let output = Process::new(env!("CARGO_BIN_EXE_rdbscope")).args(args).arg(dump).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Everything that the server says and the rows do not, with both figures.
fn differences(loaded: &BTreeMap<Place, Facts>, rows: &BTreeMap<Place, Map<String, Value>>) -> Vec<String> {
    let mut differences = vec![];
    let places: BTreeSet<_> = loaded.keys().chain(rows.keys()).collect();
    for place in places {
        let name = format!("db {} key {}", place.0, place.1.escape_ascii());
        match (loaded.get(place), rows.get(place)) {
            (Some(facts), Some(row)) => {
                for (column, theirs) in facts {
                    let ours = row.get(*column).unwrap_or_else(|| panic!("no column {column}"));
                    if ours != theirs {
                        differences.push(format!("{name}: {column}: {ours}, but the server says {theirs}; row {}", json!(row)));
                    }
                }
            }
            (Some(_), None) => differences.push(format!("{name}: missing")),
            (None, _) => differences.push(format!("{name}: not on the server")),
        }
    }
    differences
}

/// Every type and encoding that a server has once it has loaded a dump.
fn encodings_of(version: &Version) -> Vec<(&'static str, &'static str)> {
    let packed = if version.from([7, 0], [7, 2]) { "listpack" } else { "ziplist" };
    let mut all = vec![("string", "int"), ("string", "embstr"), ("string", "raw"), ("list", "quicklist"), ("set", "intset")];
    all.extend([("set", "hashtable"), ("hash", packed), ("hash", "hashtable"), ("zset", packed), ("zset", "skiplist")]);
    all.push(("stream", "stream"));
    if version.from([7, 2], [7, 2]) {
        all.extend([("list", packed), ("set", packed)]);
    }
    if !version.is_valkey && version.from([7, 4], [7, 4]) {
        all.push(("hash", "listpackex"));
    }
    all
}

/// How many keys the server holds of each type in each encoding; fails where these are too few of any.
fn encodings(version: &Version, loaded: &BTreeMap<Place, Facts>) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for facts in loaded.values() {
        *counts.entry((facts["type"].as_str().unwrap(), facts["encoding"].as_str().unwrap())).or_default() += 1;
    }
    let few: Vec<String> = encodings_of(version)
        .into_iter()
        .map(|kind| (kind, counts.get(&kind).copied().unwrap_or(0)))
        .filter(|(_, keys)| *keys < FEWEST_OF_EACH)
        .map(|((key_type, encoding), keys)| format!("{key_type} {encoding}: {keys}"))
        .collect();
    assert!(few.is_empty(), "{version}: fewer than {FEWEST_OF_EACH} keys of {}", few.join(", "));
    let all = counts.iter().map(|((key_type, encoding), keys)| format!("{key_type} {encoding} {keys}"));
    all.collect::<Vec<_>>().join(", ")
}

/// Sums over a database.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    keys: u64,
    permanent_keys: u64,
    elements: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Totals {
    databases: BTreeMap<u64, Sums>,
    keys: u64,
}

impl Totals {
    fn of_server(connection: &mut Connection, loaded: &BTreeMap<Place, Facts>) -> Self {
        let keyspace = connection.run(&command!["INFO", "keyspace"]).text();
        let mut databases = BTreeMap::new();
        for db in DATABASES {
            connection.run(&command!["SELECT", db.to_string()]);
            let keys = u64::try_from(connection.run(&command!["DBSIZE"]).integer()).unwrap();
            let line = info_field(&keyspace, &format!("db{db}")).unwrap();
            let volatile: u64 = line.split(',').find_map(|field| field.strip_prefix("expires=")).unwrap().parse().unwrap();
            let elements =
                loaded.iter().filter(|((at, _), _)| *at == db).filter_map(|(_, facts)| facts.get("elements")?.as_u64()).sum();
            databases.insert(db, Sums { keys, permanent_keys: keys - volatile, elements });
        }
        assert_eq!(keyspace.lines().filter(|line| line.starts_with("db")).count(), DATABASES.len(), "databases: {keyspace}");
        Self { keys: databases.values().map(|sums| sums.keys).sum(), databases }
    }

    /// What `report` writes of the dump.
    fn of_report(dump: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        rdbscope(&["report", "-o", folder.path().to_str().unwrap()], dump);
        let table = |name: &str| {
            let mut reader = csv::Reader::from_path(folder.path().join(name)).unwrap();
            reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap).collect::<Vec<_>>()
        };
        let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<u64>().unwrap();
        let sums = |row: &BTreeMap<String, String>| {
            let sums = Sums {
                keys: number(row, "keys"),
                permanent_keys: number(row, "permanent_keys"),
                elements: number(row, "elements"),
            };
            (number(row, "db"), sums)
        };
        let keys = table("summary.csv").iter().find(|row| row["name"] == "keys").map(|row| number(row, "value"));
        Self { databases: table("databases.csv").iter().map(sums).collect(), keys: keys.unwrap() }
    }
}
