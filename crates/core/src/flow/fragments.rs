//! Finds the connection of fragments without a transport header. They belong to the first fragment with the same
//! addresses, identification and protocol (RFC 791), if that was among the last [`REMEMBERED`] first fragments.

use crate::wire::{Addresses, Packet};

/// Bounds the memory, and the time for which an identification is valid: it is used again after 65,536 packets.
pub(crate) const REMEMBERED: usize = 1024;

/// What the fragments of one datagram have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    addresses: Addresses,
    id: u32,
    protocol: u8,
}

impl Datagram {
    pub fn of(packet: &Packet) -> Option<Self> {
        Some(Datagram { addresses: packet.addresses, id: packet.fragment_id?, protocol: packet.protocol })
    }

    fn place(&self) -> usize {
        let (source, destination) = self.addresses.numbers();
        let mixed = (source ^ destination.rotate_left(31)) as u64 ^ u64::from(self.id) << 8 ^ u64::from(self.protocol);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % REMEMBERED
    }
}

/// Each hash has one place, and the newer datagram takes it. An owner is a connection's place, and whether the sender is
/// its key's low end, unless a module says otherwise.
#[derive(Debug)]
pub(crate) struct Owners<Owner = (u32, bool)> {
    places: Vec<Option<(Datagram, Owner)>>,
}

impl<Owner> Default for Owners<Owner> {
    fn default() -> Self {
        Owners { places: Vec::new() }
    }
}

impl<Owner: Copy> Owners<Owner> {
    pub fn remember(&mut self, datagram: Datagram, owner: Owner) {
        self.places.resize(REMEMBERED, None);
        self.places[datagram.place()] = Some((datagram, owner));
    }

    pub fn owner(&self, datagram: &Datagram) -> Option<Owner> {
        let (remembered, owner) = self.places.get(datagram.place())?.as_ref()?;
        (remembered == datagram).then_some(*owner)
    }
}
