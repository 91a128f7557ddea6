//! What a TCP segment makes of both sides' states, and which letter of the history it is.

use super::side::{Control, Once, Side};
use super::state::State;
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

/// The upper-case letter of a segment's flags and payload, if it is to be written.
#[inline]
pub(super) fn flag_letter(own: &mut Side, segment: &Segment) -> Option<u8> {
    let number = segment.sequence;
    let is_written = |is_written: bool, letter: u8| is_written.then_some(letter);
    match segment.flags & (SYN | FIN | RST) {
        0 if segment.payload_bytes > 0 => is_written(own.first(Once::Data), b'D'),
        0 if segment.has(ACK) => is_written(own.first(Once::Ack), b'A'),
        0 => None,
        SYN => {
            let from_first = number.wrapping_sub(own.base());
            is_written(own.is_new(Control::Syn, from_first), if segment.has(ACK) { b'H' } else { b'S' })
        }
        FIN => is_written(own.is_new(Control::Fin, number.wrapping_add(segment.payload_bytes)), b'F'),
        RST => is_written(own.is_new(Control::Rst, number), b'R'),
        both if both & SYN != 0 => is_written(own.first(Once::MultiFlag), b'Q'),
        _ => is_written(own.first(Once::Inconsistent), b'I'),
    }
}

/// What a segment makes of its sender's state, and of the peer's.
#[inline]
pub(super) fn advance(own: &mut Side, peer: &mut Side, segment: &Segment, is_originator: bool) {
    let (syn, fin, rst) = (segment.has(SYN), segment.has(FIN), segment.has(RST));
    match own.state() {
        State::Inactive => from_inactive(own, peer, segment, is_originator),
        State::SynSent | State::SynAckSent => {
            if rst {
                own.enter(State::Reset);
            } else if fin {
                own.enter(State::Closed);
            }
        }
        State::Established | State::Partial => {
            if syn && !segment.has(ACK) && own.state() == State::Partial && peer.state() == State::Inactive {
                own.enter(State::SynSent);
            }
            if rst {
                own.enter(State::Reset);
            } else if fin {
                own.enter(State::Closed);
                if peer.state() == State::Reset && peer.previous() == State::Closed {
                    peer.enter(State::Closed);
                }
            }
        }
        State::Closed if rst && peer.state() != State::Closed => own.enter(State::Reset),
        State::Closed | State::Reset => {}
    }
}

fn from_inactive(own: &mut Side, peer: &mut Side, segment: &Segment, is_originator: bool) {
    let (syn, fin, rst, ack) = (segment.has(SYN), segment.has(FIN), segment.has(RST), segment.has(ACK));
    if syn && is_originator {
        let reversed = peer.state() == State::Established && !ack && peer.previous() == State::SynAckSent;
        own.enter(match (ack, reversed) {
            (true, _) => State::SynAckSent,
            (false, true) => State::Established,
            (false, false) => State::SynSent,
        });
    } else if syn {
        own.enter(State::Established);
        if peer.state() == State::SynSent {
            peer.enter(State::Established);
        }
    }
    if fin {
        own.enter(State::Closed);
    }
    if rst {
        own.enter(State::Reset);
    }
    if own.state() != State::Inactive {
        return;
    }
    if ack && !is_originator && peer.state() == State::SynSent && segment.payload_bytes == 0 {
        // An answer to the SYN that is none.
    } else if ack && peer.state() == State::Established {
        own.enter(State::Established);
    } else {
        own.enter(State::Partial);
    }
}
