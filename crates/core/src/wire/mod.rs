//! One frame's headers, outermost first, as far as they were captured.
//!
//! Lengths are the headers' own, so a snap length changes no count. Where a header has none (0 with
//! segmentation offload or BIG TCP), the frame's original length counts.
//!
//! Own code rather than etherparse: its slices want whole headers, while a snap length may cut TCP's options
//! with ports and numbers intact. `tests/differential.rs` holds the two equal on whole packets.

mod bytes;
pub mod checksum;
mod dissect;
pub mod ethernet;
mod ip;
pub mod ipv4;
pub mod ipv6;
mod link;
pub mod loopback;
mod packet;
pub mod ppp;
pub mod tcp;
pub mod tunnel;
pub mod udp;
mod usual;

pub use dissect::{dissect, dissect_inner, dissect_within, innermost};
pub use packet::{address, Addresses, Dissected, Packet, Transport};
