//! Token Ring (IEEE 802.5): access control, frame control and addresses; where the source address's first bit is set,
//! the route that the frame takes, with its length in five bits; then LLC in frames whose control says so.

use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 14;

pub(super) fn read(data: &[u8]) -> Next {
    const KIND: u8 = 0xc0;
    const LLC: u8 = 0x40;
    const HAS_ROUTE: u8 = 0x80;
    const ROUTE_BYTES: u8 = 0x1f;
    if data.len() < HEADER_BYTES {
        return Err(End::Unusable("token_ring_header_cut_off"));
    }
    if data[1] & KIND != LLC {
        return Err(End::NotIp("token_ring_control"));
    }
    if data[8] & HAS_ROUTE == 0 {
        return Ok((Layer::Llc, HEADER_BYTES));
    }
    match data.get(HEADER_BYTES).map(|control| usize::from(control & ROUTE_BYTES)) {
        Some(route_bytes @ 2..) => Ok((Layer::Llc, HEADER_BYTES + route_bytes)),
        Some(_) => Err(End::Unusable("token_ring_route_below_2")),
        None => Err(End::Unusable("token_ring_header_cut_off")),
    }
}
