//! The sources that tell of devices and protocols: /proc/net and ethtool.

use super::text::{Sink, Text};
use super::value::{Kind, Value};
use crate::error::Result;

/// `net/dev:eth0.rx_packets`.
pub(super) fn devices(text: &Text, sink: &mut Sink) -> Result<()> {
    const COLUMNS: [&str; 16] = [
        "rx_bytes",
        "rx_packets",
        "rx_errors",
        "rx_dropped",
        "rx_fifo",
        "rx_frame",
        "rx_compressed",
        "rx_multicast",
        "tx_bytes",
        "tx_packets",
        "tx_errors",
        "tx_dropped",
        "tx_fifo",
        "tx_collisions",
        "tx_carrier",
        "tx_compressed",
    ];
    for line in text.lines().skip(2) {
        let (device, rest) = line.text.rsplit_once(':').ok_or_else(|| line.wrong("a device and a colon"))?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.len() != COLUMNS.len() {
            return Err(line.wrong("16 numbers"));
        }
        for (column, word) in COLUMNS.iter().zip(words) {
            sink(&format!("net/dev:{}.{column}", device.trim()), Kind::Counter, line.integer(word)?);
        }
    }
    Ok(())
}

/// Pairs of lines, names and numbers: `snmp:Tcp.RetransSegs`, `netstat:TcpExt.TCPTimeouts`.
pub(super) fn header_pairs(text: &Text, prefix: &str, sink: &mut Sink) -> Result<()> {
    const GAUGES: [&str; 8] =
        ["Forwarding", "DefaultTTL", "RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab", "MPTCPCurrEstab"];
    let mut lines = text.lines();
    while let Some(names) = lines.next() {
        let numbers = lines.next().ok_or_else(|| names.wrong("a line of numbers after this one"))?;
        let mut columns = names.text.split_whitespace();
        let mut words = numbers.text.split_whitespace();
        let group = columns.next().unwrap_or_default();
        if words.next() != Some(group) || !group.ends_with(':') {
            return Err(numbers.wrong(&format!("the numbers of {group:?}")));
        }
        let group = group.trim_end_matches(':');
        loop {
            match (columns.next(), words.next()) {
                (Some(name), Some(word)) => {
                    let kind = if GAUGES.contains(&name) { Kind::Gauge } else { Kind::Counter };
                    sink(&format!("{prefix}:{group}.{name}"), kind, numbers.integer(word)?);
                }
                (None, None) => break,
                _ => return Err(numbers.wrong("as many numbers as names")),
            }
        }
    }
    Ok(())
}

/// `softnet:cpu0.dropped`, from a line of hexadecimal columns a CPU; newer kernels have more columns.
pub(super) fn softnet(text: &Text, sink: &mut Sink) -> Result<()> {
    const COUNTERS: [(usize, &str); 6] = [
        (0, "processed"),
        (1, "dropped"),
        (2, "time_squeeze"),
        (8, "cpu_collision"),
        (9, "received_rps"),
        (10, "flow_limit_count"),
    ];
    const GAUGES: [(usize, &str); 3] = [(11, "backlog_len"), (13, "input_qlen"), (14, "process_qlen")];
    const CPU: usize = 12;
    for (at, line) in text.lines().enumerate() {
        let columns = line
            .text
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).map_err(|_| line.wrong("hexadecimal numbers")))
            .collect::<Result<Vec<_>>>()?;
        let cpu = columns.get(CPU).copied().unwrap_or(at as u64);
        for (kind, names) in [(Kind::Counter, &COUNTERS[..]), (Kind::Gauge, &GAUGES[..])] {
            for (column, name) in names {
                if let Some(value) = columns.get(*column) {
                    sink(&format!("softnet:cpu{cpu}.{name}"), kind, Value::Integer(i128::from(*value)));
                }
            }
        }
    }
    Ok(())
}

/// `tc:eth0.root.dropped`, `tc:eth0.2.dropped`: of the root (which counts what its leaves drop) and of each handle below it.
///
/// ```text
/// qdisc htb 1: dev eth0 root refcnt 3 ...
///  Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
///  backlog 0b 0p requeues 0
/// ```
pub(super) fn queueing_disciplines(text: &Text, sink: &mut Sink) -> Result<()> {
    let mut at: Option<String> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words[..] {
            ["qdisc", _kind, handle, "dev", device, parent, ..] => {
                let place = if parent == "root" { "root" } else { handle.trim_end_matches(':') };
                at = Some(format!("tc:{device}.{place}"));
            }
            ["Sent", bytes, "bytes", packets, "pkt", "(dropped", dropped, "overlimits", overlimits, "requeues", _] => {
                let at = at.as_ref().ok_or_else(|| line.wrong("a qdisc before its counts"))?;
                for (name, word) in [
                    ("sent_bytes", bytes),
                    ("sent_packets", packets),
                    ("dropped", dropped.trim_end_matches(',')),
                    ("overlimits", overlimits),
                ] {
                    sink(&format!("{at}.{name}"), Kind::Counter, line.integer(word)?);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// `ethtool-S:eth0.rx_packets`. Drivers name these as they like.
pub(super) fn ethtool_statistics(text: &Text, device: &str, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        let is_heading = line.text.trim_end() == "NIC statistics:" || line.text.trim().is_empty();
        if is_heading || line.text.starts_with("no stats available") {
            continue;
        }
        let (name, word) = line.text.rsplit_once(':').ok_or_else(|| line.wrong("a name, a colon, a number"))?;
        let word = word.trim();
        let value = if word.contains('.') { line.real(word)? } else { line.integer(word)? };
        sink(&format!("ethtool-S:{device}.{}", name.trim()), Kind::Counter, value);
    }
    Ok(())
}

/// `ethtool-k:eth0.tcp-segmentation-offload`, on or off.
pub(super) fn ethtool_features(text: &Text, device: &str, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        if line.text.starts_with("Features for ") || line.text.trim().is_empty() {
            continue;
        }
        let (name, rest) = line.text.split_once(':').ok_or_else(|| line.wrong("a feature and a colon"))?;
        let state = rest.split_whitespace().next().filter(|state| matches!(*state, "on" | "off"));
        let state = state.ok_or_else(|| line.wrong("on or off"))?;
        sink(&format!("ethtool-k:{device}.{}", name.trim()), Kind::Setting, Value::Text(state.to_owned()));
    }
    Ok(())
}
