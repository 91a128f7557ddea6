//! A whole capture through one reader, for tests.

use twinbed_core::readers::{read_slice, Reader};

/// What a reader makes of a file that is a capture.
pub fn whole<R: Reader>(reader: R, file: &[u8]) -> R::Tables {
    read_slice(reader, file).expect("a capture")
}
