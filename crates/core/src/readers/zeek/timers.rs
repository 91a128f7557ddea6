//! When a connection's state is given up, by the packets' own times. Names and values are those that Zeek documents
//! (`scripts/base/init-bare.zeek`); all in nanoseconds.

const SECOND: i64 = 1_000_000_000;

/// After a SYN without an answer.
pub const TCP_ATTEMPT_DELAY: i64 = 5 * SECOND;
/// After both sides have closed.
pub const TCP_CLOSE_DELAY: i64 = 5 * SECOND;
/// After a RST.
pub const TCP_RESET_DELAY: i64 = 5 * SECOND;
/// Without a packet.
pub const TCP_INACTIVITY_TIMEOUT: i64 = 300 * SECOND;
pub const UDP_INACTIVITY_TIMEOUT: i64 = 60 * SECOND;
pub const ICMP_INACTIVITY_TIMEOUT: i64 = 60 * SECOND;
/// From look to look at whether a connection of DNS over UDP is silent.
pub const DNS_SESSION_TIMEOUT: i64 = 10 * SECOND;
/// Silence after which a look ends it.
const DNS_SILENCE: i64 = DNS_SESSION_TIMEOUT - SECOND;

/// Responders' ports of UDP that Zeek takes for DNS (`scripts/base/protocols/dns/main.zeek`), ascending.
const DNS_PORTS: [u16; 4] = [53, 137, 5353, 5355];

pub fn is_dns(responder_port: u16) -> bool {
    DNS_PORTS.binary_search(&responder_port).is_ok()
}

/// The look that ends a connection of DNS, whose first and last packets were then.
pub fn dns_end_ns(start_ns: i64, last_ns: i64) -> i64 {
    let until_silent = last_ns.saturating_sub(start_ns).saturating_add(DNS_SILENCE);
    let looks = until_silent.saturating_add(DNS_SESSION_TIMEOUT - 1) / DNS_SESSION_TIMEOUT;
    start_ns.saturating_add(looks.saturating_mul(DNS_SESSION_TIMEOUT))
}
