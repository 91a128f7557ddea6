//! One frame's headers, outermost first, as far as they were captured.
//!
//! Lengths are the headers' own, so a snap length changes no count. Where a header has none (0 with
//! segmentation offload or BIG TCP), the frame's original length counts.
//!
//! An encapsulation is a file: those of a link are entered always, those inside IP packets on request.
//!
//! Own code rather than etherparse: its slices want whole headers, while a snap length may cut TCP's options
//! with ports and numbers intact. `tests/differential.rs` holds the two equal on whole packets.

mod bytes;
pub mod checksum;
mod cooked;
mod dissect;
mod erspan;
mod ether_type;
mod ethernet;
mod fabric_path;
mod fddi;
mod geneve;
mod gre;
mod gtp;
mod hdlc;
mod ip;
pub mod ipv4;
pub mod ipv6;
mod layer;
mod link;
mod llc;
mod loopback;
mod mpls;
mod packet;
mod pbb;
mod ppp;
mod pppoe;
mod radiotap;
pub mod tcp;
mod teredo;
mod token_ring;
mod tunnel;
pub mod udp;
pub(crate) mod usual;
mod vlan;
mod vn_tag;
mod vxlan;
mod wlan;

pub use dissect::{dissect, dissect_inner, dissect_within, innermost, tunnel_not_entered};
pub use packet::{address, Addresses, Dissected, Packet, Transport};
