//! GTP version 1, user plane (3GPP TS 29.281): 8 bytes; 4 more where any of three flags is set; extension headers, each of
//! which says its length in words of 4 bytes and ends with the next one's type; then an IP packet.

use super::layer::Layer;

pub(super) const PORT: u16 = 2152;

/// What `data`, a UDP payload, carries, and how many bytes before it are GTP's.
pub(super) fn carried(data: &[u8]) -> Option<(Layer, usize)> {
    const VERSION_1: u8 = 0x30;
    const USER_DATA: u8 = 0xff;
    const EXTENSION: u8 = 0x04;
    let &[flags, message, ..] = data else { return None };
    if flags & 0xf0 != VERSION_1 || message != USER_DATA {
        return None;
    }
    if flags & 0x07 == 0 {
        return Some((Layer::Ip, 8));
    }
    let mut at = 12;
    // Without the flag, the field is there and says nothing.
    let mut next = if flags & EXTENSION != 0 { *data.get(11)? } else { 0 };
    while next != 0 {
        let length = usize::from(*data.get(at)?) * 4;
        if length == 0 {
            return None;
        }
        at += length;
        next = *data.get(at - 1)?;
    }
    Some((Layer::Ip, at))
}
