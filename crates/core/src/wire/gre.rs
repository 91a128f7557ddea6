//! GRE (RFC 2784, RFC 2890), version 0 without routing: what its protocol number names, ERSPAN among it.

use super::bytes::u16_at;
use super::erspan;
use super::layer::Layer;

const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// What `payload`, a GRE header first, carries, and how many bytes before it are headers.
pub(super) fn carried(payload: &[u8]) -> Option<(Layer, usize)> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    if payload.len() < 4 {
        return None;
    }
    let flags = u16_at(payload, 0);
    if flags & (VERSION | ROUTING) != 0 {
        return None;
    }
    let optional = [CHECKSUM, KEY, SEQUENCE].iter().filter(|&&flag| flags & flag != 0).count();
    let header_bytes = 4 + 4 * optional;
    let (layer, more) = match u16_at(payload, 2) {
        // Type I has neither a sequence number nor a header.
        ERSPAN_II if flags & SEQUENCE == 0 => (Layer::Ethernet, 0),
        ERSPAN_II => erspan::carried_by_ii(payload.get(header_bytes..)?)?,
        ERSPAN_III => erspan::carried_by_iii(payload.get(header_bytes..)?)?,
        ether_type => (Layer::EtherType(ether_type), 0),
    };
    Some((layer, header_bytes + more))
}
