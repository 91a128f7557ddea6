//! Teredo (RFC 4380, section 5.1.1): IPv6 in UDP with a server or relay, after an authentication and an origin
//! indication where they are there.

use super::layer::Layer;

pub(super) const PORT: u16 = 3544;

/// What `data`, a UDP payload, carries, and how many bytes before it are Teredo's.
pub(super) fn carried(data: &[u8]) -> Option<(Layer, usize)> {
    const ORIGIN_BYTES: usize = 8;
    let mut at = 0;
    if let &[0, 1, identifier_bytes, value_bytes, ..] = data {
        // Nonce and confirmation come last.
        at += 4 + usize::from(identifier_bytes) + usize::from(value_bytes) + 8 + 1;
    }
    if let [0, 0, ..] = data.get(at..)? {
        at += ORIGIN_BYTES;
    }
    (data.get(at)? >> 4 == 6).then_some((Layer::Ip, at))
}
