//! QEMU's fw_cfg device: named texts of the machine's owner that no snapshot of a guest keeps, read through I/O ports.
//!
//! Source: QEMU's docs/specs/fw_cfg. Selector 0x19 is the directory: a big-endian count, then entries of 64 bytes.

use std::arch::asm;

use crate::failure::{Failure, Outcome, Tried};
use crate::sys;

const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
const DIRECTORY: u16 = 0x19;
const NAME_AT: usize = 8;
const ENTRY_BYTES: usize = 64;
/// More than QEMU ever lists: what counts more is no directory.
const MOST_ENTRIES: usize = 1024;
const MOST_BYTES: usize = 4096;

/// The text of this name. This process must be root of a guest.
pub fn read(name: &str) -> Outcome<String> {
    allow().tried(|| "use the I/O ports of fw_cfg")?;
    select(DIRECTORY);
    let entries = word() as usize;
    if entries > MOST_ENTRIES {
        return Err(Failure::new(format!("fw_cfg lists {entries} texts: is this no guest of QEMU's?")));
    }
    let directory: Vec<[u8; ENTRY_BYTES]> = (0..entries).map(|_| bytes()).collect();
    let found = directory.iter().filter_map(parse).find(|(found, _, _)| *found == name);
    let Some((_, selector, length)) = found else {
        return Err(Failure::new(format!("fw_cfg has no text {name}")));
    };
    if length > MOST_BYTES {
        return Err(Failure::new(format!("fw_cfg's text {name} has {length} bytes; the most is {MOST_BYTES}")));
    }
    select(selector);
    let text = (0..length).map(|_| byte()).collect();
    String::from_utf8(text).map_err(|_| Failure::new(format!("fw_cfg's text {name} is not UTF-8")))
}

/// Name, selector and length of an entry; none where its name is not text.
fn parse(entry: &[u8; ENTRY_BYTES]) -> Option<(&str, u16, usize)> {
    let [l0, l1, l2, l3, s0, s1, ..] = *entry;
    let name = entry[NAME_AT..].split(|byte| *byte == 0).next()?;
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    Some((std::str::from_utf8(name).ok()?, u16::from_be_bytes([s0, s1]), length))
}

fn allow() -> std::io::Result<()> {
    // SAFETY: no memory is involved.
    sys::check(unsafe { libc::ioperm(SELECTOR.into(), 2, 1) }).map(drop)
}

fn word() -> u32 {
    u32::from_be_bytes(bytes())
}

fn bytes<const N: usize>() -> [u8; N] {
    std::array::from_fn(|_| byte())
}

fn select(item: u16) {
    // SAFETY: `allow` has given leave; the device only remembers the number.
    unsafe { asm!("out dx, ax", in("dx") SELECTOR, in("ax") item, options(nomem, nostack, preserves_flags)) }
}

fn byte() -> u8 {
    let byte: u8;
    // SAFETY: `allow` has given leave; the device gives the next byte of what is selected, or 0.
    unsafe { asm!("in al, dx", in("dx") DATA, out("al") byte, options(nomem, nostack, preserves_flags)) }
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_entry() {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&[0, 0, 1, 2, 0, 0x2a, 0, 0]);
        entry[8..15].copy_from_slice(b"opt/x\0y");
        assert_eq!(parse(&entry), Some(("opt/x", 0x2a, 258)));
        entry[8] = 0xff;
        assert_eq!(parse(&entry), None);
    }
}
