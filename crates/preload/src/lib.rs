//! A library that is preloaded into tcpdump and QEMU (`LD_PRELOAD`).
//!
//! For tcpdump it shortens the time after which the kernel hands over a block of captured packets that is not full. tcpdump asks for 1 s and
//! has no option for less, and the packets in a block that has not been handed over are lost when tcpdump ends. Without this
//! library a capture is the same, but the end of a run waits up to a second for it.
//!
//! And it lets tcpdump begin where a lab was made without root. There tcpdump is root of a user namespace that may not set groups
//! (user_namespaces(7)), but sets them all the same, and gives up where it cannot. It has no option to let that be.
//!
//! And it lets Ubuntu's tcpdump (4.99.4 of 24.04) stay root: told `-Z root` it forgets the name, and then looks up the user without
//! one, to give the file away, which ends it by SIGSEGV.
//!
//! For QEMU it opens the memory of a saved guest to be read alone: whoever breaks out of one guest cannot change the others'.

use std::ffi::{c_char, c_int, c_void};
use std::{fs, mem, ptr};

/// Often enough that the end of a run does not wait; 50 wake-ups a second are lost in the noise.
const TIMEOUT_MS: c_int = 20;
/// libpcap's generic error.
const PCAP_ERROR: c_int = -1;

/// Stands in for libpcap's function of this name.
///
/// # Safety
/// `capture` must be what libpcap's own function takes; it is only passed on.
#[no_mangle]
pub unsafe extern "C" fn pcap_set_timeout(capture: *mut c_void, _asked_ms: c_int) -> c_int {
    let real = libc::dlsym(libc::RTLD_NEXT, c"pcap_set_timeout".as_ptr());
    if real.is_null() {
        return PCAP_ERROR;
    }
    // The signature that libpcap documents in pcap_set_timeout(3PCAP).
    let real: unsafe extern "C" fn(*mut c_void, c_int) -> c_int = mem::transmute(real);
    real(capture, TIMEOUT_MS)
}

/// Stands in for libc's function of this name. Nothing is done where the user namespace denies setting groups.
///
/// # Safety
/// `user` must be what libc's own function takes; it is only passed on.
#[no_mangle]
pub unsafe extern "C" fn initgroups(user: *const c_char, group: libc::gid_t) -> c_int {
    if fs::read_to_string("/proc/self/setgroups").is_ok_and(|allowed| allowed.trim_end() == "deny") {
        return 0;
    }
    let real = libc::dlsym(libc::RTLD_NEXT, c"initgroups".as_ptr());
    if real.is_null() {
        return -1;
    }
    // initgroups(3).
    let real: unsafe extern "C" fn(*const c_char, libc::gid_t) -> c_int = mem::transmute(real);
    real(user, group)
}

/// Stands in for libc's function of this name. No name is root's.
///
/// # Safety
/// `name` must be null, or what libc's own function takes.
#[no_mangle]
pub unsafe extern "C" fn getpwnam(name: *const c_char) -> *mut libc::passwd {
    let real = libc::dlsym(libc::RTLD_NEXT, c"getpwnam".as_ptr());
    if real.is_null() {
        return ptr::null_mut();
    }
    // getpwnam(3).
    let real: unsafe extern "C" fn(*const c_char) -> *mut libc::passwd = mem::transmute(real);
    real(if name.is_null() { c"root".as_ptr() } else { name })
}

/// The variable that names a file which is only read, whatever the program asks for.
const ONLY_READ: &std::ffi::CStr = c"TWINBED_ONLY_READ";

/// Stands in for libc's function of this name. The file that `TWINBED_ONLY_READ` names is opened to be read.
///
/// QEMU before 8.2 opens the file of a guest's memory to be written also where it maps a copy of its own.
///
/// # Safety
/// `path` must be what libc's own function takes. It is passed on, as is `mode`, which callers may leave out.
#[no_mangle]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let only_read = libc::getenv(ONLY_READ.as_ptr());
    let is_it = !only_read.is_null() && !path.is_null() && libc::strcmp(only_read, path) == 0;
    let flags = if is_it { libc::O_RDONLY | libc::O_CLOEXEC } else { flags };
    libc::openat64(libc::AT_FDCWD, path, flags, mode)
}

/// What programs call instead of `open64` that were built with checks (`_FORTIFY_SOURCE`).
///
/// # Safety
/// As of `open64`.
#[no_mangle]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    open64(path, flags, 0)
}
