//! Progress on stderr, where that is a terminal.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use rdbscope::analyse::Advance;

/// A bar of bytes with percent, keys a second and time left; hidden unless stderr is a terminal.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    keys: AtomicU64,
}

impl Progress {
    /// A bar for `bytes` of dumps; where nobody knows how many they are, one without percent.
    pub fn new(bytes: Option<u64>, quiet: bool) -> Self {
        let bar = match bytes {
            _ if quiet || !stderr().is_terminal() => ProgressBar::hidden(),
            Some(bytes) => ProgressBar::new(bytes),
            None => ProgressBar::no_length(),
        };
        let template = match bytes {
            Some(_) => "{binary_bytes} of {binary_total_bytes}  {percent}%  {msg}  {eta} left",
            None => "{binary_bytes}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, started: Instant::now(), keys: AtomicU64::new(0) }
    }

    /// A piece was passed.
    pub fn advance(&self, advance: Advance) {
        if self.bar.is_hidden() {
            return;
        }
        let keys = self.keys.fetch_add(advance.keys, Ordering::Relaxed) + advance.keys;
        self.bar.inc(advance.bytes);
        let per_second = keys as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!("{} keys/s", HumanCount(per_second as u64)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
