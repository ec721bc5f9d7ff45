//! Live servers: finding them, starting them on a dump, stopping them.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command;
use crate::resp::{Connection, Reply};

/// Longer than a start on the test's dump takes.
const START: Duration = Duration::from_secs(60);

/// Another program may take a free port before the server does.
const STARTS: usize = 5;

/// A server that a test asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// `Redis` or `Valkey`.
    pub product: &'static str,
    /// Beginning of the version.
    pub version: &'static str,
    /// Environment variable that names the program.
    pub variable: &'static str,
    /// Name of the program on PATH.
    pub program: &'static str,
}

/// The servers that tests are run against.
pub const REDIS_6_2: Wanted =
    Wanted { product: "Redis", version: "6.2", variable: "RDBSCOPE_REDIS_6_2", program: "redis-server" };
pub const REDIS_7_0: Wanted =
    Wanted { product: "Redis", version: "7.0", variable: "RDBSCOPE_REDIS_7_0", program: "redis-server" };
pub const REDIS_8_2: Wanted =
    Wanted { product: "Redis", version: "8.2", variable: "RDBSCOPE_REDIS_8_2", program: "redis-server" };
pub const VALKEY_9_1: Wanted =
    Wanted { product: "Valkey", version: "9.1", variable: "RDBSCOPE_VALKEY_9_1", program: "valkey-server" };

impl Wanted {
    /// The program; without it the test says so and is skipped, unless `RDBSCOPE_REQUIRE_LIVE=1` is set.
    pub fn find_or_skip(&self) -> Option<PathBuf> {
        match self.find() {
            Ok(program) => Some(program),
            Err(why) if std::env::var_os("RDBSCOPE_REQUIRE_LIVE").is_some_and(|value| value == "1") => panic!("{why}"),
            Err(why) => {
                println!("skipped: {why}");
                None
            }
        }
    }

    /// The program, or why there is none. A program that was named must be there and be the one that was asked for.
    pub fn find(&self) -> Result<PathBuf, String> {
        let Self { product, version, variable, program } = self;
        let absent = |why: String| format!("no {product} {version} server: {why}");
        let Some(named) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
            let path = path.ok_or_else(|| absent(format!("{variable} is not set and {program} is not on PATH")))?;
            return match self.version_of(&path) {
                Ok(_) => Ok(path),
                Err(other) => Err(absent(format!("{variable} is not set and {program} on PATH is {other}"))),
            };
        };
        let path = PathBuf::from(named);
        match self.version_of(&path) {
            Ok(_) => Ok(path),
            Err(other) => panic!("{variable}: {} is {other}, not {product} {version}", path.display()),
        }
    }

    /// What the program says it is; an error where that is not what was asked for.
    fn version_of(&self, path: &Path) -> Result<String, String> {
        let output = Process::new(path).arg("--version").output().map_err(|error| format!("no program ({error})"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_once(" v=").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default();
        let same = version.strip_prefix(self.version).is_some_and(|rest| rest.starts_with('.'));
        if text.starts_with(self.product) && same { Ok(version.to_string()) } else { Err(text.trim().to_string()) }
    }
}

/// A running server. Stopped, by its own process, when it goes out of scope, also in a test that panics.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts `program` in `folder`, where it loads `dump.rdb` if that is there, and waits until it has.
    pub fn start(program: &Path, folder: &Path, extra: &[&str]) -> Self {
        let mut last = String::new();
        for _ in 0..STARTS {
            match Self::try_start(program, folder, extra) {
                Ok(server) => return server,
                Err(why) => last = why,
            }
        }
        panic!("{} does not start: {last}", program.display());
    }

    fn try_start(program: &Path, folder: &Path, extra: &[&str]) -> Result<Self, String> {
        let port = free_port();
        let log = folder.join("server.log");
        let to_log = || File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
        let child = Process::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no"])
            .args(["--save", "", "--appendonly", "no", "--dbfilename", DUMP, "--dir"])
            .arg(folder)
            .args(extra)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(to_log()?)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut server = Self { child, port };
        let log = || fs::read_to_string(&log).unwrap_or_default();
        let begin = Instant::now();
        while begin.elapsed() < START {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{status}\n{}", log()));
            }
            if server.is_ready() {
                return Ok(server);
            }
            sleep(Duration::from_millis(20));
        }
        Err(format!("no answer after {START:?}\n{}", log()))
    }

    /// True once the data is loaded. That it is this child who answers matters where another program took the port.
    fn is_ready(&self) -> bool {
        let reply = Connection::open(self.port).and_then(|mut connection| connection.ask(&command!["INFO", "server"]));
        let Ok(Reply::Bulk(info)) = reply else { return false };
        let loaded = Connection::open(self.port).and_then(|mut connection| connection.ask(&command!["PING"]));
        info_field(&String::from_utf8_lossy(&info), "process_id") == Some(self.child.id().to_string())
            && matches!(loaded, Ok(Reply::Status(pong)) if pong == "PONG")
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.port).unwrap_or_else(|error| panic!("port {}: {error}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// File name of the dump in a server's folder.
pub const DUMP: &str = "dump.rdb";

/// A port of this machine that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap_or_else(|error| panic!("no free port: {error}"));
    listener.local_addr().map_or_else(|error| panic!("no free port: {error}"), |address| address.port())
}

/// A field of an INFO reply.
pub fn info_field(info: &str, name: &str) -> Option<String> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_string())
}

/// The server's allocator, as `--allocator` names it. The two builds of jemalloc give themselves the same name; a block of 20 bytes takes
/// 24 in one and 32 in the other.
pub fn allocator(connection: &mut Connection, version: &Version) -> &'static str {
    let info = connection.run(&command!["INFO", "memory"]).text();
    if info_field(&info, "mem_allocator").as_deref() == Some("libc") {
        return "libc";
    }
    if !version.from([7, 0], [7, 0]) {
        return "jemalloc";
    }
    let usage = |connection: &mut Connection, value: &str| {
        connection.run(&command!["SET", "probe:of:allocator", value]);
        connection.run(&command!["MEMORY", "USAGE", "probe:of:allocator"]).integer()
    };
    // Raw strings of 51 and 60 bytes: 56 and 64, or 64 both.
    let (short, long) = (usage(connection, &"x".repeat(51)), usage(connection, &"x".repeat(60)));
    connection.run(&command!["DEL", "probe:of:allocator"]);
    if short == long { "system" } else { "jemalloc" }
}

/// Product and version of the server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub is_valkey: bool,
    pub number: [u16; 3],
}

impl Version {
    pub fn of(connection: &mut Connection) -> Self {
        let info = connection.run(&command!["INFO", "server"]).text();
        let valkey = info_field(&info, "valkey_version");
        let is_valkey = valkey.is_some();
        let text = valkey.or_else(|| info_field(&info, "redis_version")).unwrap_or_default();
        let parts = text.split('.').map(|part| part.parse().unwrap_or_else(|_| panic!("version {text:?}")));
        let parts: Vec<u16> = parts.collect();
        let number = parts.try_into().unwrap_or_else(|_| panic!("version {text:?}"));
        Self { is_valkey, number }
    }

    /// True where Redis is at least `redis`, or Valkey at least `valkey` (major and minor).
    pub fn from(&self, redis: [u16; 2], valkey: [u16; 2]) -> bool {
        let [major, minor, _] = self.number;
        [major, minor] >= if self.is_valkey { valkey } else { redis }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.number;
        write!(f, "{} {major}.{minor}.{patch}", if self.is_valkey { "Valkey" } else { "Redis" })
    }
}
