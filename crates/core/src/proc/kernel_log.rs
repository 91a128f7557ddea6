//! Records of /dev/kmsg (Documentation/ABI/testing/dev-kmsg), and the probe's line `lost N`.

use super::snapshot::snapshots;
use crate::error::{Error, Result};
use crate::escapes::unescaped;

pub(super) const SOURCE: &str = "/dev/kmsg";

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub sequence: u64,
    /// Since boot, on the kernel's own clock.
    pub seconds: f64,
    /// 0 (emergency) to 7 (debug).
    pub level: u8,
    pub facility: u32,
    pub text: String,
}

impl Record {
    pub fn level_name(&self) -> &'static str {
        ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"][usize::from(self.level & 7)]
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct KernelLog {
    pub records: Vec<Record>,
    /// Records that the kernel had overwritten before they were read.
    pub lost: u64,
    /// Whether the file has the log at all.
    pub present: bool,
}

/// Reads the kernel's log of a whole snapshot file.
pub fn kernel_log(bytes: &[u8]) -> Result<KernelLog> {
    const LAYER: &str = "/dev/kmsg";
    const EXPECTED: &str = "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT";
    let mut log = KernelLog::default();
    let file = snapshots(bytes)?;
    let sources = file.snapshots.iter().flat_map(|snapshot| &snapshot.sources);
    for source in sources.filter(|source| source.name == SOURCE) {
        let Some(content) = source.content else { continue };
        log.present = true;
        for (at, text) in String::from_utf8_lossy(content).lines().enumerate() {
            let wrong = || Error::line(LAYER, source.first_line + at, text, EXPECTED);
            if text.is_empty() || text.starts_with(' ') {
                // Properties of the record above (SUBSYSTEM=, DEVICE=).
                continue;
            }
            if let Some(lost) = text.strip_prefix("lost ") {
                let lost: u64 = lost.trim().parse().map_err(|_| wrong())?;
                log.lost = log.lost.saturating_add(lost);
                continue;
            }
            let (head, message) = text.split_once(';').ok_or_else(wrong)?;
            let fields: Vec<&str> = head.split(',').collect();
            let [priority, sequence, microseconds, ..] = fields[..] else { return Err(wrong()) };
            let priority: u32 = priority.parse().map_err(|_| wrong())?;
            let microseconds: u64 = microseconds.parse().map_err(|_| wrong())?;
            log.records.push(Record {
                sequence: sequence.parse().map_err(|_| wrong())?,
                seconds: microseconds as f64 / 1e6,
                level: (priority & 7) as u8,
                facility: priority >> 3,
                text: String::from_utf8_lossy(&unescaped(message.as_bytes())).into_owned(),
            });
        }
    }
    Ok(log)
}
