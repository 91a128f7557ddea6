//! TCP's states of one side, as an observer on the path sees them.
//!
//! Source: Zeek's documentation of `endpoint` (`scripts/base/init-bare.zeek`).

/// [`State::number`] is Zeek's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    #[default]
    Inactive,
    SynSent,
    SynAckSent,
    /// Sends, but its SYN was not seen.
    Partial,
    Established,
    Closed,
    Reset,
}

impl State {
    /// Nothing is known of this side's beginning.
    pub fn has_no_beginning(self) -> bool {
        matches!(self, State::Inactive | State::Partial)
    }

    pub fn number(self) -> u8 {
        self as u8
    }
}
