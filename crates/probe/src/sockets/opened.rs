//! How many TCP connections this network namespace has opened, by its own counters.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use crate::failure::{Failure, Outcome, Tried};

const SNMP: &str = "/proc/net/snmp";
const SOCKSTAT6: &str = "/proc/net/sockstat6";

/// RFC 4022: tcpActiveOpens and tcpPassiveOpens. A connection over the loopback counts in both, and has two sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Opened {
    pub active: u64,
    pub passive: u64,
}

pub struct Counters {
    snmp: File,
    sockstat6: Option<File>,
    content: Vec<u8>,
}

impl Counters {
    pub fn open() -> Outcome<Self> {
        let snmp = File::open(SNMP).tried(|| format!("open {SNMP}"))?;
        Ok(Counters { snmp, sockstat6: File::open(SOCKSTAT6).ok(), content: vec![0; 8192] })
    }

    pub fn opened(&mut self) -> Outcome<Opened> {
        let length = self.snmp.read_at(&mut self.content, 0).tried(|| format!("read {SNMP}"))?;
        let text = String::from_utf8_lossy(&self.content[..length]);
        parse(&text).ok_or_else(|| Failure::new(format!("{SNMP} has no ActiveOpens and PassiveOpens of Tcp")))
    }

    /// Whether there are sockets of IPv6, those that listen and those that carry IPv4 among them.
    pub fn has_ipv6(&mut self) -> bool {
        let Some(file) = &self.sockstat6 else { return false };
        let length = file.read_at(&mut self.content, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&self.content[..length]);
        text.lines().any(|line| line.starts_with("TCP6:") && !line.ends_with(" 0"))
    }
}

/// A line of names and one of numbers, both of which begin with the protocol.
fn parse(snmp: &str) -> Option<Opened> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_whitespace);
    let (names, numbers) = (lines.next()?, lines.next()?);
    let (mut active, mut passive) = (None, None);
    for (name, number) in names.zip(numbers) {
        match name {
            "ActiveOpens" => active = number.parse().ok(),
            "PassiveOpens" => passive = number.parse().ok(),
            _ => {}
        }
    }
    Some(Opened { active: active?, passive: passive? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_columns_by_their_names() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens MaxConn PassiveOpens\nTcp: 1 12 -1 345\nUdp: A\nUdp: 1\n";
        assert_eq!(parse(text), Some(Opened { active: 12, passive: 345 }));
        assert_eq!(parse("Tcp: RtoAlgorithm\nTcp: 1\n"), None);
        assert_eq!(parse("Tcp: ActiveOpens"), None);
    }

    #[test]
    fn a_connection_is_opened_at_both_ends() {
        let mut counters = Counters::open().unwrap();
        let before = counters.opened().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let after = counters.opened().unwrap();
        // Other tests open some too.
        assert!(after.active > before.active && after.passive > before.passive, "{before:?} {after:?}");
    }
}
