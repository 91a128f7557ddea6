//! The one word for how a connection went.
//!
//! Source: Zeek's documentation of `conn_state` (`scripts/base/protocols/conn/main.zeek`).

use super::history::History;
use super::side::Side;
use super::state::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionState {
    /// A SYN, no answer.
    S0,
    /// Established, not closed.
    S1,
    /// Established and closed by both sides.
    SF,
    /// Rejected.
    Rej,
    /// Established; the originator closed, the responder did not.
    S2,
    /// Established; the responder closed, the originator did not.
    S3,
    /// Established; the originator aborted.
    RstO,
    /// The responder aborted.
    RstR,
    /// SYN and RST of the originator, no SYN+ACK seen.
    RstOS0,
    /// SYN+ACK and RST of the responder, no SYN seen.
    RstRH,
    /// SYN and FIN of the originator, no SYN+ACK seen.
    SH,
    /// SYN+ACK and FIN of the responder, no SYN seen.
    ShR,
    /// None of these.
    Oth,
}

impl ConnectionState {
    pub fn name(self) -> &'static str {
        match self {
            ConnectionState::S0 => "S0",
            ConnectionState::S1 => "S1",
            ConnectionState::SF => "SF",
            ConnectionState::Rej => "REJ",
            ConnectionState::S2 => "S2",
            ConnectionState::S3 => "S3",
            ConnectionState::RstO => "RSTO",
            ConnectionState::RstR => "RSTR",
            ConnectionState::RstOS0 => "RSTOS0",
            ConnectionState::RstRH => "RSTRH",
            ConnectionState::SH => "SH",
            ConnectionState::ShR => "SHR",
            ConnectionState::Oth => "OTH",
        }
    }

    pub fn of_tcp(originator: &Side, responder: &Side, history: &History) -> Self {
        use ConnectionState::*;
        match (originator.state(), responder.state()) {
            (State::SynSent | State::SynAckSent, State::Reset) => Rej,
            (State::Reset, State::Reset) if originator.size() == 0 && responder.size() == 0 => Rej,
            (from, State::Reset) if from.has_no_beginning() => RstRH,
            (_, State::Reset) => RstR,
            (State::Reset, to) if to.has_no_beginning() => {
                if history.is_syn_then_reset() {
                    RstOS0
                } else {
                    Oth
                }
            }
            (State::Reset, _) => RstO,
            (State::Closed, State::Closed) => SF,
            (State::Closed, to) if to.has_no_beginning() => SH,
            (State::Closed, _) => S2,
            (from, State::Closed) if from.has_no_beginning() => ShR,
            (_, State::Closed) => S3,
            (State::SynSent, State::Inactive) => S0,
            (State::Established, State::Established) => S1,
            _ => Oth,
        }
    }

    /// Of UDP, by who sent anything.
    pub fn of_udp(originator: &Side, responder: &Side) -> Self {
        match (originator.counts.packets > 0, responder.counts.packets > 0) {
            (true, true) => ConnectionState::SF,
            (true, false) => ConnectionState::S0,
            (false, true) => ConnectionState::ShR,
            (false, false) => ConnectionState::Oth,
        }
    }
}
