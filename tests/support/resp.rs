//! A small RESP client: commands go out in pipelines, replies come back in order.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Longer than any reply takes; a server that hangs fails the test instead of stopping it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Commands that go out before their replies are read.
const PIPELINE: usize = 1000;

/// A command: its name and arguments.
pub type Command = Vec<Vec<u8>>;

/// Builds a command from anything that has bytes.
#[macro_export]
macro_rules! command {
    ($($part:expr),+ $(,)?) => {
        vec![$(AsRef::<[u8]>::as_ref(&$part).to_vec()),+]
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    Nil,
}

impl Reply {
    /// The number that was answered.
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(n) => *n,
            other => panic!("a number was expected, not {other:?}"),
        }
    }

    /// The text that was answered.
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("text was expected, not {other:?}"),
        }
    }

    /// The list that was answered.
    pub fn array(self) -> Vec<Reply> {
        match self {
            Self::Array(replies) => replies,
            other => panic!("a list was expected, not {other:?}"),
        }
    }

    /// The list of names and values that was answered.
    pub fn map(self) -> BTreeMap<String, Reply> {
        let mut replies = self.array().into_iter();
        let mut map = BTreeMap::new();
        while let (Some(name), Some(value)) = (replies.next(), replies.next()) {
            map.insert(name.text(), value);
        }
        map
    }

    /// The bytes that were answered.
    pub fn bulk(self) -> Vec<u8> {
        match self {
            Self::Bulk(bytes) => bytes,
            other => panic!("bytes were expected, not {other:?}"),
        }
    }
}

#[derive(Debug)]
pub struct Connection {
    replies: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { replies: BufReader::with_capacity(1 << 16, stream) })
    }

    /// The reply to one command, errors included.
    pub fn ask(&mut self, command: &Command) -> io::Result<Reply> {
        self.send(std::slice::from_ref(command))?;
        self.reply()
    }

    /// The replies to `commands`; none of them may be an error.
    pub fn pipeline(&mut self, commands: &[Command]) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(commands.len());
        for commands in commands.chunks(PIPELINE) {
            self.send(commands).unwrap_or_else(|error| panic!("sending commands: {error}"));
            for command in commands {
                match self.reply() {
                    Ok(Reply::Error(error)) => panic!("{}: {error}", text(command)),
                    Ok(reply) => replies.push(reply),
                    Err(error) => panic!("{}: {error}", text(command)),
                }
            }
        }
        replies
    }

    /// The reply to one command that may not be an error.
    pub fn run(&mut self, command: &Command) -> Reply {
        let mut replies = self.pipeline(std::slice::from_ref(command));
        replies.remove(0)
    }

    fn send(&mut self, commands: &[Command]) -> io::Result<()> {
        let mut out = Vec::new();
        for command in commands {
            write!(out, "*{}\r\n", command.len())?;
            for part in command {
                write!(out, "${}\r\n", part.len())?;
                out.extend_from_slice(part);
                out.extend_from_slice(b"\r\n");
            }
        }
        self.replies.get_mut().write_all(&out)
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.replies.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let odd = || io::Error::new(io::ErrorKind::InvalidData, format!("no reply: {line:?}"));
        let (kind, rest) = line.split_at_checked(1).ok_or_else(odd)?;
        let number = || rest.parse::<i64>().map_err(|_| odd());
        Ok(match kind {
            "+" => Reply::Status(rest.to_string()),
            "-" => Reply::Error(rest.to_string()),
            ":" => Reply::Integer(number()?),
            "$" => match usize::try_from(number()?) {
                Err(_) => Reply::Nil,
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.replies.read_exact(&mut bytes)?;
                    bytes.truncate(len);
                    Reply::Bulk(bytes)
                }
            },
            "*" => match number()? {
                len if len < 0 => Reply::Nil,
                len => Reply::Array((0..len).map(|_| self.reply()).collect::<io::Result<_>>()?),
            },
            _ => return Err(odd()),
        })
    }
}

/// The beginning of a command, for messages.
fn text(command: &Command) -> String {
    let part = |part: &Vec<u8>| part[..part.len().min(60)].escape_ascii().to_string();
    command.iter().take(4).map(part).collect::<Vec<_>>().join(" ")
}
