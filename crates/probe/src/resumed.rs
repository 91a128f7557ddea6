//! What tells a guest that was resumed from a snapshot from all others that were: its clock of the day and its random numbers.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use crate::failure::{Failure, Outcome, Tried};
use crate::request::{Resumed, Settled};
use crate::sys;

const RANDOM: &str = "/dev/urandom";
const ENTROPY_BYTES: usize = 32;
const BITS_PER_BYTE: i32 = 8;
/// linux/random.h: _IOW('R', 0x03, int[2]).
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
/// linux/random.h: _IO('R', 0x07).
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;

/// struct rand_pool_info.
#[repr(C)]
struct Entropy {
    bits: i32,
    bytes: i32,
    content: [u8; ENTROPY_BYTES],
}

/// Sets the clock first: the kernel's own seed is worth nothing here, as all guests of a snapshot have it in common.
pub fn settle(request: &Resumed) -> Outcome<Settled> {
    sys::set_realtime(request.realtime_s).tried(|| "set the clock of the day")?;
    let content = parse(&request.entropy)?;
    reseed(&Entropy { bits: ENTROPY_BYTES as i32 * BITS_PER_BYTE, bytes: ENTROPY_BYTES as i32, content })
        .tried(|| "reseed the kernel's random numbers")?;
    let mut random = [0; ENTROPY_BYTES];
    File::open(RANDOM).and_then(|mut file| file.read_exact(&mut random)).tried(|| format!("read {RANDOM}"))?;
    Ok(Settled {
        // The kernel draws it when it is first read.
        boot_id: sys::boot_id().tried(|| "read the boot id")?,
        random: random.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

fn parse(hex: &str) -> Outcome<[u8; ENTROPY_BYTES]> {
    let digit = |at: usize| hex.get(2 * at..2 * at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..ENTROPY_BYTES).map(digit).collect();
    match bytes.and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) if hex.len() == 2 * ENTROPY_BYTES => Ok(bytes),
        _ => Err(Failure::new(format!("entropy is not {} hexadecimal digits", 2 * ENTROPY_BYTES))),
    }
}

fn reseed(entropy: &Entropy) -> io::Result<()> {
    let device = File::options().write(true).open(RANDOM)?;
    // SAFETY: the kernel reads as many bytes of the structure as it says, and the second call takes no argument.
    unsafe {
        sys::check(libc::ioctl(device.as_raw_fd(), RNDADDENTROPY as _, entropy))?;
        sys::check(libc::ioctl(device.as_raw_fd(), RNDRESEEDCRNG as _)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_digits_of_all_bytes() {
        assert_eq!(parse(&"0a".repeat(32)).unwrap(), [10; 32]);
        for wrong in ["", &"0a".repeat(31), &"0a".repeat(33), &"0g".repeat(32), &"é".repeat(32)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
