//! The system calls that move bytes.

use super::probe_files::calls_that_move_bytes;

macro_rules! names {
    ($($constant:ident)*) => {
        [$(stringify!($constant)),*]
    };
}

/// Whether a positive value that a call gives back is a number of bytes.
pub fn moves_bytes(call: &str) -> bool {
    calls_that_move_bytes!(names).iter().any(|constant| constant.strip_prefix("SYS_") == Some(call))
}
