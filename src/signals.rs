//! Signals: an interrupt leaves nothing half-written behind, a full file is an error like others, and a dump that is truncated while it is
//! mapped does not end the process.
//!
//! The last is for the program alone. The library maps files under the contract that they do not change; here, a page of a map that the file
//! no longer has is replaced by zeros, the walk goes on over these, and what it found is reported as partial.

#![allow(unsafe_code, reason = "signal handlers, and the pages that one of them replaces")]

use std::io::{IsTerminal, Write};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::{process, thread};

use libc::{c_int, c_void, sigaction, siginfo_t};
use rdbscope::input::{self, MapWatch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{commands, output};

/// Most maps that are watched: Linux lets a process have no more.
const MOST_MAPS: usize = 1 << 16;

/// A mapped file: its first byte and the one behind its last, zero where there is none.
struct Map {
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut_off: AtomicBool,
}

static MAPS: [Map; MOST_MAPS] =
    [const { Map { start: AtomicUsize::new(0), end: AtomicUsize::new(0), is_cut_off: AtomicBool::new(false) } }; MOST_MAPS];

/// Maps that were ever watched; more than [`MOST_MAPS`] are not.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a page, and what handled bus errors before; set before the handler is.
static PAGE: AtomicUsize = AtomicUsize::new(0);
static BEFORE: AtomicPtr<sigaction> = AtomicPtr::new(ptr::null_mut());

/// Handles what is to be handled, from now on.
pub fn handle() {
    handle_bus_errors();
    input::watch_maps(MapWatch { mapped: watch, unmapped: forget, is_cut_off });
    // A file that grows above `ulimit -f` is then an error of the write.
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    handle_interrupts();
}

/// Lets the process outlive the truncation of a mapped file.
fn watch(map: &[u8]) {
    let range = map.as_ptr_range();
    if let Some(slot) = MAPS.get(WATCHED.fetch_add(1, Ordering::Relaxed)) {
        slot.end.store(range.end as usize, Ordering::Release);
        slot.start.store(range.start as usize, Ordering::Release);
    }
}

/// The map is gone.
fn forget(map: &[u8]) {
    if let Some(slot) = slot_at(map.as_ptr() as usize) {
        slot.start.store(0, Ordering::Release);
        slot.end.store(0, Ordering::Release);
    }
}

/// True where a part of the map was read as zeros because the file did not have it.
fn is_cut_off(map: &[u8]) -> bool {
    slot_at(map.as_ptr() as usize).is_some_and(|slot| slot.is_cut_off.load(Ordering::Acquire))
}

/// The map that an address is in.
fn slot_at(at: usize) -> Option<&'static Map> {
    let watched = WATCHED.load(Ordering::Acquire).min(MOST_MAPS);
    MAPS[..watched].iter().find(|map| (map.start.load(Ordering::Acquire)..map.end.load(Ordering::Acquire)).contains(&at))
}

fn handle_bus_errors() {
    let mut before = MaybeUninit::<sigaction>::zeroed();
    let mut action = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: a `sigaction` of zeros is a valid one. Both point to memory that outlives the calls. `on_bus_error` has the signature that
    // SA_SIGINFO asks for, and does nothing that a handler must not.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        if page <= 0 || libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return;
        }
        PAGE.store(page as usize, Ordering::Release);
        BEFORE.store(Box::into_raw(Box::new(before.assume_init())), Ordering::Release);
        let action = action.assume_init_mut();
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, action, ptr::null_mut());
    }
}

/// Replaces what a watched file no longer has by zeros. Anything else is handled as it was before.
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands a valid `siginfo_t` to a handler with SA_SIGINFO; of a bus error it has an address.
    let (at, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    if code > 0
        && let Some(map) = slot_at(at)
        && replace(at, map.end.load(Ordering::Acquire))
    {
        map.is_cut_off.store(true, Ordering::Release);
        return;
    }
    // SAFETY: the pointer was set before this handler and is never freed. All of these may be called in a handler. On return the instruction
    // faults again, and what was there before sees it; a signal that somebody sent comes again, and ends the process.
    unsafe {
        if code > 0 {
            libc::sigaction(signal, BEFORE.load(Ordering::Acquire), ptr::null_mut());
        } else {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// Puts zeros in the place of the pages from the one with `at` to `end`.
fn replace(at: usize, end: usize) -> bool {
    let page = at & !(PAGE.load(Ordering::Acquire) - 1);
    // SAFETY: the pages are those of a map that is watched, so that nothing else is in them, and nothing writes to them. Whoever reads them
    // holds a slice of `u8`, for which zeros are as good as anything. The call is one to the kernel, takes no lock and no memory of the process,
    // and leaves `errno` alone where it succeeds. The map is undone as a whole, whatever is in its pages.
    unsafe {
        let zeros = libc::mmap(
            page as *mut c_void,
            end - page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
            -1,
            0,
        );
        zeros != libc::MAP_FAILED
    }
}

/// Ends the process at an interrupt, once what is not finished is removed. Whoever had a signal ignored wanted that.
fn handle_interrupts() {
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
    let Ok(mut signals) = Signals::new(wanted.collect::<Vec<_>>()) else { return };
    // Not in the handler: a thread may remove files and take locks.
    thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        output::give_up();
        // The next one ends the process even where nobody takes the message.
        // SAFETY: the default runs no code.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        if std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
        commands::complain("interrupted; no output is left half-written");
        process::exit(128 + signal);
    });
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: without a new action the call only fills in the present one, which zeros are a valid beginning for.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
