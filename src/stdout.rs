//! Whether there is a standard output. The runtime of the language replaces one that is closed by `/dev/null` before `main`, and takes a write that
//! fails because the output is open for reading only for done: rows would be lost without a word.

#![allow(unsafe_code, reason = "it has to be looked at before the runtime does")]

#[cfg(unix)]
mod at_start {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_CLOSED: AtomicBool = AtomicBool::new(false);

    // SAFETY: the section holds functions that are called before `main`, without arguments that are looked at.
    #[used]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: the call asks for flags and changes nothing, whether the descriptor is open or not.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
        IS_CLOSED.store(flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY, Ordering::Relaxed);
    }

    pub fn is_closed() -> bool {
        IS_CLOSED.load(Ordering::Relaxed)
    }
}

/// True where the process was started without a standard output that can be written to.
pub fn is_closed() -> bool {
    #[cfg(unix)]
    return at_start::is_closed();
    #[cfg(not(unix))]
    false
}
