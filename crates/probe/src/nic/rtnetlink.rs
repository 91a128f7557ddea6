//! rtnetlink(7): what a NIC has of the network: addresses, MTU, queueing discipline, routes. Layouts are of linux/rtnetlink.h,
//! linux/if_link.h and linux/if_addr.h.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::netlink::{Attributes, Socket};
use crate::sys;

/// Sizes of struct ifinfomsg, ifaddrmsg, rtmsg and tcmsg.
const LINK: usize = 16;
const ADDRESS: usize = 8;
const ROUTE: usize = 12;
const QDISC: usize = 20;
const TCA_KIND: u16 = 1;
const TC_H_ROOT: u32 = u32::MAX;
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;

#[derive(Serialize, Default)]
pub struct State {
    mac: Option<String>,
    mtu: Option<u32>,
    up: Option<bool>,
    carrier: Option<bool>,
    /// With the lengths of their prefixes, IPv4's first.
    addresses: Vec<String>,
    /// The kind of the discipline at the root.
    qdisc: Option<String>,
    routes: Vec<Route>,
}

/// An IPv4 route of the main table.
#[derive(Serialize)]
struct Route {
    /// Segments; None where the route does not say.
    initial_window: Option<u32>,
    quickack: bool,
}

pub fn read(device: &str) -> io::Result<State> {
    let name = sys::c_string(device)?;
    // SAFETY: the name is NUL-terminated.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut socket, mut state) = (Socket::open(libc::NETLINK_ROUTE)?, State::default());
    socket.dump(libc::RTM_GETLINK, &[0; LINK], |body| {
        if word(body, 4) == Some(index) {
            state.link(body);
        }
    })?;
    socket.dump(libc::RTM_GETADDR, &[0; ADDRESS], |body| {
        if word(body, 4) == Some(index) {
            state.addresses.extend(address(body));
        }
    })?;
    socket.dump(libc::RTM_GETQDISC, &[0; QDISC], |body| {
        if word(body, 4) == Some(index) && word(body, 12) == Some(TC_H_ROOT) {
            state.qdisc = attribute(body, QDISC, TCA_KIND).map(text);
        }
    })?;
    let mut of_ipv4 = [0; ROUTE];
    of_ipv4[0] = libc::AF_INET as u8;
    socket.dump(libc::RTM_GETROUTE, &of_ipv4, |body| state.routes.extend(route(body, index)))?;
    Ok(state)
}

impl State {
    fn link(&mut self, body: &[u8]) {
        let flags = word(body, 8).map(|flags| flags as libc::c_int);
        self.up = flags.map(|flags| flags & libc::IFF_UP != 0);
        self.carrier = flags.map(|flags| flags & libc::IFF_LOWER_UP != 0);
        self.mtu = attribute(body, LINK, libc::IFLA_MTU).and_then(|value| word(value, 0));
        self.mac = attribute(body, LINK, libc::IFLA_ADDRESS)
            .map(|value| value.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"));
    }
}

fn address(body: &[u8]) -> Option<String> {
    // The end of a point-to-point link has the peer's address in the second one.
    let value = attribute(body, ADDRESS, libc::IFA_LOCAL).or_else(|| attribute(body, ADDRESS, libc::IFA_ADDRESS))?;
    let prefix = body.get(1)?;
    let ipv4 = <[u8; 4]>::try_from(value).map(|bytes| format!("{}/{prefix}", Ipv4Addr::from(bytes)));
    ipv4.or_else(|_| value.try_into().map(|bytes: [u8; 16]| format!("{}/{prefix}", Ipv6Addr::from(bytes)))).ok()
}

/// None where it is of another table or device.
fn route(body: &[u8], index: u32) -> Option<Route> {
    let of_device = attribute(body, ROUTE, libc::RTA_OIF).and_then(|value| word(value, 0)) == Some(index);
    if *body.get(4)? != libc::RT_TABLE_MAIN || !of_device {
        return None;
    }
    let metrics = attribute(body, ROUTE, libc::RTA_METRICS).unwrap_or_default();
    let metric = |kind| attribute(metrics, 0, kind).and_then(|value| word(value, 0));
    Some(Route { initial_window: metric(RTAX_INITCWND), quickack: metric(RTAX_QUICKACK) == Some(1) })
}

/// The value of an attribute among those that begin at `from`.
fn attribute(body: &[u8], from: usize, kind: u16) -> Option<&[u8]> {
    Attributes(body.get(from..)?).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}
