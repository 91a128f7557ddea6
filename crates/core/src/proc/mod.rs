//! What `twinbed-probe counters` writes: the kernel's counters, snapshot by snapshot, as raw text.
//!
//! | file | does |
//! |---|---|
//! | `snapshot` | cuts the file into snapshots and sources |
//! | `sources`, `network` | one source's text into keys and values |
//! | `text`, `value` | a source's lines, and the values of its keys |
//! | `series` | all snapshots' values of each key; differences; intervals |
//! | `kernel_log` | the kernel's log records |

pub mod kernel_log;
mod network;
pub mod series;
pub mod snapshot;
mod sources;
mod text;
mod value;

pub use kernel_log::{kernel_log, KernelLog};
pub use series::{Counters, Difference, Interval};
pub use value::{Kind, Value};
