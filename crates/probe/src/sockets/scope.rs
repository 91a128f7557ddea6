//! Which sockets are the workload's: those between this host and the workload's other hosts, but for the ports of others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::diag::{Id, IPV4};
use crate::failure::{Failure, Outcome};

pub struct Scope {
    /// Addresses at the other end; with none it is any.
    pub peers: Vec<IpAddr>,
    /// Ports that are not the workload's, at either end.
    pub without: Vec<RangeInclusive<u16>>,
}

impl Scope {
    pub fn new(peers: &[String], without: &[String]) -> Outcome<Self> {
        let address =
            |text: &String| text.parse().map_err(|_| Failure::new(format!("--peer takes an address, not {text:?}")));
        let peers = peers.iter().map(address).collect::<Outcome<_>>()?;
        let without = without.iter().map(|text| ports(text)).collect::<Outcome<_>>()?;
        Ok(Scope { peers, without })
    }

    pub fn has(&self, family: u8, id: &Id) -> bool {
        self.covers(address(family, id.destination()), [id.source_port(), id.destination_port()])
    }

    pub fn covers(&self, peer: IpAddr, ports: [u16; 2]) -> bool {
        (self.peers.is_empty() || self.peers.contains(&peer))
            && !self.without.iter().any(|range| ports.iter().any(|port| range.contains(port)))
    }
}

/// An IPv4 address that a socket of IPv6 carries is the IPv4 address.
pub fn address(family: u8, bytes: &[u8]) -> IpAddr {
    if family == IPV4 {
        let four: [u8; 4] = bytes[..4].try_into().expect("four bytes");
        return IpAddr::V4(Ipv4Addr::from(four));
    }
    let sixteen: [u8; 16] = bytes[..16].try_into().expect("sixteen bytes");
    Ipv6Addr::from(sixteen).to_canonical()
}

/// `22` or `2120-2122`.
fn ports(text: &str) -> Outcome<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(Failure::new(format!("--without takes a port or a range such as 2120-2122, not {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::diag::IPV6;
    use super::*;

    fn id(source_port: u16, destination_port: u16, destination: &[u8]) -> Id {
        let mut bytes = [0; 48];
        bytes[0..2].copy_from_slice(&source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&destination_port.to_be_bytes());
        bytes[20..20 + destination.len()].copy_from_slice(destination);
        Id(bytes)
    }

    fn scope(peers: &[&str], without: &[&str]) -> Outcome<Scope> {
        let texts = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        Scope::new(&texts(peers), &texts(without))
    }

    #[test]
    fn is_between_hosts_of_the_workload_and_not_on_ports_of_others() {
        let scope = scope(&["10.0.0.2", "fd00::2"], &["22", "2120-2122"]).unwrap();
        assert!(scope.has(IPV4, &id(40000, 80, &[10, 0, 0, 2])));
        assert!(!scope.has(IPV4, &id(40000, 80, &[10, 0, 0, 3])));
        for port in [22, 2120, 2121, 2122] {
            assert!(!scope.has(IPV4, &id(40000, port, &[10, 0, 0, 2])));
            assert!(!scope.has(IPV4, &id(port, 40000, &[10, 0, 0, 2])));
        }
        assert!(scope.has(IPV4, &id(2119, 2123, &[10, 0, 0, 2])));
        let six: Ipv6Addr = "fd00::2".parse().unwrap();
        assert!(scope.has(IPV6, &id(1, 2, &six.octets())));
        let carried = "10.0.0.2".parse::<Ipv4Addr>().unwrap().to_ipv6_mapped();
        assert!(scope.has(IPV6, &id(1, 2, &carried.octets())));
    }

    #[test]
    fn says_what_is_wrong() {
        for (peers, without) in [(["host"], ["22"]), (["::1"], ["9-8"]), (["::1"], ["70000"])] {
            assert!(scope(&peers, &without).is_err());
        }
        assert!(scope(&[], &[]).unwrap().has(IPV4, &id(1, 2, &[1, 2, 3, 4])));
    }
}
