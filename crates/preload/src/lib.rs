//! A library that is preloaded into tcpdump (`LD_PRELOAD`). It shortens the time after which the kernel hands over a block of
//! captured packets that is not full. tcpdump asks for 1 s and has no option for less, and the packets in a block that has not
//! been handed over are lost when tcpdump ends. Without this library a capture is the same, but the end of a run waits up to a
//! second for it.

use std::ffi::{c_int, c_void};
use std::mem;

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
