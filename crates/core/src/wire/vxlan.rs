//! VXLAN (RFC 7348) on its assigned port and on the one that Linux used before.

use super::layer::Layer;

pub(super) const PORTS: [u16; 2] = [4789, 8472];

/// What `data`, a UDP payload, carries, and how many bytes before it are VXLAN's.
pub(super) fn carried(data: &[u8]) -> Option<(Layer, usize)> {
    const HAS_IDENTIFIER: u8 = 0x08;
    (data.first()? & HAS_IDENTIFIER != 0).then_some((Layer::Ethernet, 8))
}
