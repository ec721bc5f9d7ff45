//! The header of every CSV file, word for word: names of columns are a promise to whoever reads them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use support::{Report, fixtures, run};

const REPORT: [(&str, &str); 17] = [
    ("advice.csv", "advice,class,from,to,keys,memory_bytes,name_bytes,saved_bytes,sampled_one_in"),
    (
        "classes.csv",
        "class,pattern,registered,owner,keys,keys_share,memory_bytes,memory_share,serialized_bytes,elements,\
         avg_memory_bytes,p50_memory_bytes,p90_memory_bytes,p99_memory_bytes,max_memory_bytes,largest_key,\
         permanent_keys,permanent_memory_bytes,expired_keys,expired_memory_bytes,ttl_p50_seconds,ttl_p90_seconds,\
         ttl_max_seconds,types,not_modelled_keys,example_key",
    ),
    ("ttl_histogram.csv", "class,bucket,keys,memory_bytes"),
    (
        "types.csv",
        "kind,type,encoding,keys,elements,memory_bytes,serialized_bytes,permanent_keys,expired_keys,max_elements,\
         max_memory_bytes",
    ),
    (
        "big_keys.csv",
        "rank,rule,db,key,class,type,encoding,elements,payload_bytes,largest_element_bytes,memory_bytes,\
         serialized_bytes,ttl_seconds,slot,input,parts,big_and_volatile",
    ),
    ("permanent_keys.csv", "rank,db,key,class,type,encoding,elements,memory_bytes,serialized_bytes,slot,input"),
    ("permanent_keys_emptied.csv", "rank,db,key,class,type,encoding,elements,memory_bytes,serialized_bytes,slot,input"),
    ("databases.csv", "db,keys,memory_bytes,serialized_bytes,elements,permanent_keys,expired_keys,expired_memory_bytes"),
    ("slots.csv", "slot,keys,memory_bytes,serialized_bytes,elements,permanent_keys,expired_keys,expired_memory_bytes"),
    (
        "slot_skew.csv",
        "measure,population,used,mean,max,max_slot,max_over_mean,expected_max_over_mean,cv,expected_cv,gini,top1_share",
    ),
    ("inputs.csv", "input,server,version,rdb_version,snapshot_time,snapshot_source,keys,bytes,stored_bytes,checksum,partial"),
    ("permanent_classes.csv", "class,registered,owner,keys,memory_bytes,largest_key"),
    ("size_histogram.csv", "class,bucket_min_bytes,bucket_max_bytes,keys,memory_bytes"),
    ("functions.csv", "input,library,engine,bytes"),
    ("modules.csv", "module,version,keys,elements,serialized_bytes,permanent_keys,expired_keys,aux_records,aux_bytes"),
    (
        "streams.csv",
        "db,key,class,entries,groups,consumers,pending,last_id,max_deleted_id,entries_added,deleted,memory_bytes,\
         serialized_bytes,slot,input",
    ),
    ("summary.csv", "name,value,unit"),
];

const KEYS: &str = "db,key,type,encoding,elements,payload_bytes,serialized_bytes,memory_bytes,expires_at_ms,ttl_seconds,\
                    slot,class,shape,idle_seconds,freq";

const RDBTOOLS: &str = "database,type,key,size_in_bytes,encoding,num_elements,len_largest_element,expiry";

/// The dumps whose headers must be the same: with keys of every kind, and without any.
const DUMPS: [&str; 2] = ["truth/redis-7.4.1-zoo.rdb", "truth/redis-8.2.3-empty.rdb"];

fn header(file: &[u8]) -> &str {
    std::str::from_utf8(file).unwrap().lines().next().unwrap()
}

#[test]
fn of_a_report() {
    for dump in DUMPS {
        let report = Report::of([fixtures().join(dump)]);
        assert_eq!(report.run.code, 0);
        let headers: BTreeMap<&str, &str> = report
            .files
            .iter()
            .filter(|(name, _)| *name != "manifest.json")
            .map(|(name, file)| (name.as_str(), header(file)))
            .collect();
        // Whatever file is written is named here.
        assert_eq!(headers, BTreeMap::from(REPORT), "{dump}");
    }
}

#[test]
fn of_keys() {
    for dump in DUMPS {
        let dump = fixtures().join(dump);
        let dump = dump.to_str().unwrap();
        assert_eq!(header(&run(["keys", dump]).ok().stdout), KEYS);
        assert_eq!(header(&run(["keys", dump, "--preset", "rdbtools"]).ok().stdout), RDBTOOLS);
        let chosen = ["keys", dump, "--columns", "slot,key_b64,largest_element_bytes"];
        assert_eq!(header(&run(chosen).ok().stdout), "slot,key_b64,largest_element_bytes");
    }
}
