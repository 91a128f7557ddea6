//! LISTENING: waits until something is bound to a port in this network namespace.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::request::{Listening, Protocol, Waited};

const POLL: Duration = Duration::from_millis(2);

pub fn wait(request: &Listening) -> Outcome<Waited> {
    let limit = Duration::try_from_secs_f64(request.limit_s)
        .map_err(|error| Failure::new(format!("limit_s {}: {error}", request.limit_s)))?;
    let start = Instant::now();
    let tables: &[&str] = match request.protocol {
        Protocol::Tcp => &["/proc/net/tcp", "/proc/net/tcp6"],
        Protocol::Udp => &["/proc/net/udp", "/proc/net/udp6"],
    };
    loop {
        // A kernel without IPv6 lacks the second table.
        let bound = tables
            .iter()
            .any(|path| fs::read_to_string(path).is_ok_and(|t| is_bound(&t, request.protocol, request.port)));
        let waited = start.elapsed();
        if bound {
            return Ok(Waited { waited_s: waited.as_secs_f64() });
        }
        if waited >= limit {
            return Err(Failure {
                errno: Some(libc::ETIMEDOUT),
                message: format!(
                    "nothing listened on {:?} port {} within {} s",
                    request.protocol, request.port, request.limit_s
                ),
            });
        }
        thread::sleep(POLL.min(limit - waited));
    }
}

/// Rows are `sl local_address rem_address st ...`, with the port in hexadecimal after a colon.
fn is_bound(table: &str, protocol: Protocol, port: u16) -> bool {
    const TCP_LISTEN: &str = "0A";
    table.lines().skip(1).any(|row| {
        let mut fields = row.split_ascii_whitespace();
        let local = fields.nth(1).and_then(|address| address.rsplit_once(':'));
        let state = fields.nth(1);
        local.is_some_and(|(_, p)| u16::from_str_radix(p, 16) == Ok(port))
            && (protocol == Protocol::Udp || state == Some(TCP_LISTEN))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Copied from a Debian 12 host: sshd listening, and a connection to it.
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17412 1
   1: 0100007F:A2F4 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 19011 1
";

    #[test]
    fn only_listening_sockets_count_for_tcp() {
        assert!(is_bound(TCP, Protocol::Tcp, 22));
        assert!(!is_bound(TCP, Protocol::Tcp, 0xa2f4));
        assert!(is_bound(TCP, Protocol::Udp, 0xa2f4));
        assert!(!is_bound(TCP, Protocol::Tcp, 2));
        assert!(!is_bound("", Protocol::Tcp, 22));
    }
}
