//! sock_diag(7): the TCP sockets of this network namespace, as its kernel describes them.
//!
//! A dump walks the kernel's whole table of connections, which has hundreds of thousands of places on a machine with much
//! memory, and takes as long whether it holds ten sockets or none. A socket that is known is asked for by its addresses and
//! its cookie, which takes some microseconds. Layouts are of linux/sock_diag.h and linux/inet_diag.h.

use std::io;

use crate::netlink::{self, Attributes, Socket};
use crate::sys;

pub const IPV4: u8 = libc::AF_INET as u8;
pub const IPV6: u8 = libc::AF_INET6 as u8;
/// TCP_SYN_SENT of the kernel's tcp_states.h: a connection that is not there yet.
pub const SYN_SENT: u8 = 2;

const NETLINK_SOCK_DIAG: libc::c_int = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// TCP_ESTABLISHED, SYN_SENT, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK and CLOSING: those with a tcp_info that moves.
const STATES: u32 = 1 << 1 | 1 << SYN_SENT | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const MESSAGE: usize = 72;
const ID_AT: usize = 4;
const ID: usize = 48;
/// Answers wait in the socket's buffer, which has room for about a hundred.
const AT_ONCE: usize = 32;

/// inet_diag_sockid: ports, addresses, device and cookie, as the kernel gave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(pub [u8; ID]);

impl Id {
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// 16 bytes, of which an IPv4 address has the first four.
    pub fn source(&self) -> &[u8] {
        &self.0[4..20]
    }

    pub fn destination(&self) -> &[u8] {
        &self.0[20..36]
    }

    /// Of the socket, never given to another until the machine starts anew.
    pub fn cookie(&self) -> u64 {
        u64::from_ne_bytes(self.0[40..48].try_into().expect("eight bytes"))
    }
}

/// One socket of an answer.
#[derive(Debug)]
pub struct Found<'a> {
    pub family: u8,
    pub state: u8,
    pub id: Id,
    /// struct tcp_info, as much of it as this kernel has.
    pub info: Option<&'a [u8]>,
    /// The name of its congestion control, where it was asked for.
    pub congestion: Option<&'a [u8]>,
}

pub struct Diag(Socket);

impl Diag {
    pub fn open() -> io::Result<Self> {
        Ok(Diag(Socket::open(NETLINK_SOCK_DIAG)?))
    }

    /// Every socket of a family. `each` is told when it was asked for, on the monotonic clock. Fails with ENOENT where the
    /// kernel has no such sockets.
    pub fn dump(&mut self, family: u8, mut each: impl FnMut(i64, &Found)) -> io::Result<()> {
        let request = request(family, 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1), &Id([0; ID]), 0, true);
        let mut asked = sys::monotonic_ns();
        self.0.send(&request)?;
        loop {
            // The kernel reads the next part while it hands over this one.
            let next = sys::monotonic_ns();
            for message in self.0.receive(0)? {
                match libc::c_int::from(message.kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(message.error()),
                    _ => found(message.body).iter().for_each(|found| each(asked, found)),
                }
            }
            asked = next;
        }
    }

    /// The sockets of these families and ids. `each` is told when it was asked for, the place in `wanted`, and nothing of one
    /// that is gone.
    pub fn lookup(&mut self, wanted: &[(u8, Id)], mut each: impl FnMut(i64, usize, Option<&Found>)) -> io::Result<()> {
        for (round, some) in wanted.chunks(AT_ONCE).enumerate() {
            let first = round * AT_ONCE;
            let mut requests = Vec::new();
            for (at, (family, id)) in some.iter().enumerate() {
                requests.extend(request(*family, 1 << (INET_DIAG_INFO - 1), id, (first + at) as u32, false));
            }
            let asked = sys::monotonic_ns();
            self.0.send(&requests)?;
            // All answers are there by now, one for each request.
            for _ in some {
                let messages = match self.0.receive(libc::MSG_DONTWAIT) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    messages => messages?,
                };
                for message in messages {
                    // An error is ENOENT or ESTALE: it is gone, and maybe another has its addresses.
                    let at = message.sequence as usize;
                    if at < wanted.len() {
                        let found = (message.kind == SOCK_DIAG_BY_FAMILY).then(|| found(message.body)).flatten();
                        each(asked, at, found.as_ref());
                    }
                }
            }
        }
        Ok(())
    }
}

/// A netlink message with an inet_diag_req_v2.
fn request(family: u8, extensions: u8, id: &Id, sequence: u32, dump: bool) -> Vec<u8> {
    let mut body = [0; 8 + ID];
    body[..3].copy_from_slice(&[family, libc::IPPROTO_TCP as u8, extensions]);
    body[4..8].copy_from_slice(&STATES.to_ne_bytes());
    body[8..].copy_from_slice(&id.0);
    netlink::request(SOCK_DIAG_BY_FAMILY, if dump { libc::NLM_F_DUMP } else { 0 }, sequence, &body)
}

/// None where the body of an answer is too short to be one.
fn found(body: &[u8]) -> Option<Found<'_>> {
    let head = body.get(..MESSAGE)?;
    let id = Id(head[ID_AT..ID_AT + ID].try_into().expect("as many bytes"));
    let mut found = Found { family: head[0], state: head[1], id, info: None, congestion: None };
    for (kind, value) in Attributes(&body[MESSAGE..]) {
        match kind {
            INET_DIAG_INFO => found.info = Some(value),
            INET_DIAG_CONG => found.congestion = Some(value.split(|byte| *byte == 0).next().unwrap_or(value)),
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn ids(diag: &mut Diag, port: u16) -> Vec<Id> {
        let mut ids = Vec::new();
        diag.dump(IPV4, |_, found| {
            if found.id.source_port() == port || found.id.destination_port() == port {
                assert!(found.info.is_some_and(|info| info.len() >= 104), "what all kernels have");
                assert!(found.congestion.is_some_and(|name| !name.is_empty()));
                ids.push(found.id);
            }
        })
        .unwrap();
        ids
    }

    #[test]
    fn a_connection_has_two_sockets_that_are_found_again_until_they_are_gone() {
        let mut diag = Diag::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(ids(&mut diag, port), []);
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let both = ids(&mut diag, port);
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].source(), both[1].destination());
        assert_eq!(&both[0].source()[..4], &[127, 0, 0, 1]);

        let wanted: Vec<_> = both.iter().map(|id| (IPV4, *id)).collect();
        let mut again = Vec::new();
        diag.lookup(&wanted, |_, at, found| again.push((at, found.map(|found| (found.id, found.state))))).unwrap();
        assert_eq!(again, [(0, Some((both[0], 1))), (1, Some((both[1], 1)))]);

        drop((client, server));
        // The kernel of a busy machine may take a moment to carry the last segments across.
        let begun = std::time::Instant::now();
        loop {
            let mut after = Vec::new();
            diag.lookup(&wanted, |_, at, found| after.push((at, found.is_some_and(|found| found.info.is_some()))))
                .unwrap();
            let now = (after, ids(&mut diag, port));
            if now == (vec![(0, false), (1, false)], vec![]) {
                break;
            }
            assert!(begun.elapsed().as_secs() < 60, "{now:?}");
        }
    }

    #[test]
    fn a_short_answer_is_none() {
        assert!(found(&[0; MESSAGE - 1]).is_none());
    }
}
