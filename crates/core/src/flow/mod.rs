//! What the readers of connections share: the table of connections, and the summary of a capture.

pub(crate) mod fragments;
mod index;
mod key;
mod pair;
pub mod protocol;
pub(crate) mod reassembly;
mod span;
mod summary;
pub(crate) mod table;
pub(crate) mod tracking;
mod wire_packets;

pub use key::Key;
pub use protocol::Protocol;
pub(crate) use span::widen;
pub use summary::Summary;
pub use wire_packets::{SegmentLimits, WirePackets};
