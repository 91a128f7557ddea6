//! sock_diag(7): the TCP sockets of this network namespace, as its kernel describes them.
//!
//! A dump walks the kernel's whole table of connections, which has hundreds of thousands of places on a machine with much
//! memory, and takes as long whether it holds ten sockets or none. A socket that is known is asked for by its addresses and
//! its cookie, which takes some microseconds. Layouts are of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
const HEADER: usize = 16;
const MESSAGE: usize = 72;
const ID_AT: usize = 4;
const ID: usize = 48;
const REQUEST: usize = HEADER + 8 + ID;
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

pub struct Diag {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl Diag {
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the new descriptor is ours alone.
        let socket =
            unsafe { OwnedFd::from_raw_fd(sys::check(libc::socket(libc::AF_NETLINK, kind, NETLINK_SOCK_DIAG))?) };
        Ok(Diag { socket, answer: vec![0; 64 * 1024] })
    }

    /// Every socket of a family. `each` is told when it was asked for, on the monotonic clock. Fails with ENOENT where the
    /// kernel has no such sockets.
    pub fn dump(&mut self, family: u8, mut each: impl FnMut(i64, &Found)) -> io::Result<()> {
        let request = request(family, 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1), &Id([0; ID]), 0, true);
        let mut asked = sys::monotonic_ns();
        self.send(&request)?;
        loop {
            // The kernel reads the next part while it hands over this one.
            let next = sys::monotonic_ns();
            let length = self.receive(0)?;
            for message in Messages(&self.answer[..length]) {
                match message.kind {
                    kind if kind == libc::NLMSG_DONE as u16 => return Ok(()),
                    kind if kind == libc::NLMSG_ERROR as u16 => return Err(message.error()),
                    _ => message.found().iter().for_each(|found| each(asked, found)),
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
            let mut requests = Vec::with_capacity(some.len() * REQUEST);
            for (at, (family, id)) in some.iter().enumerate() {
                requests.extend(request(*family, 1 << (INET_DIAG_INFO - 1), id, (first + at) as u32, false));
            }
            let asked = sys::monotonic_ns();
            self.send(&requests)?;
            // All answers are there by now, one for each request.
            for _ in some {
                let length = match self.receive(libc::MSG_DONTWAIT) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    length => length?,
                };
                for message in Messages(&self.answer[..length]) {
                    // An error is ENOENT or ESTALE: it is gone, and maybe another has its addresses.
                    let at = message.sequence as usize;
                    if at < wanted.len() {
                        let found = (message.kind == SOCK_DIAG_BY_FAMILY).then(|| message.found()).flatten();
                        each(asked, at, found.as_ref());
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length are of one slice.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn receive(&mut self, flags: libc::c_int) -> io::Result<usize> {
        loop {
            let (buffer, length) = (self.answer.as_mut_ptr().cast(), self.answer.len());
            // SAFETY: pointer and length are of one vector, which nobody else has.
            let received = unsafe { libc::recv(self.socket.as_raw_fd(), buffer, length, flags) };
            match usize::try_from(received) {
                Ok(length) => return Ok(length),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// A netlink message with an inet_diag_req_v2.
fn request(family: u8, extensions: u8, id: &Id, sequence: u32, dump: bool) -> [u8; REQUEST] {
    let flags = libc::NLM_F_REQUEST as u16 | if dump { libc::NLM_F_DUMP as u16 } else { 0 };
    let mut bytes = [0; REQUEST];
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = family;
    bytes[17] = libc::IPPROTO_TCP as u8;
    bytes[18] = extensions;
    bytes[20..24].copy_from_slice(&STATES.to_ne_bytes());
    bytes[24..].copy_from_slice(&id.0);
    bytes
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn error(&self) -> io::Error {
        let code = self.body.get(..4).map_or(0, |bytes| i32::from_ne_bytes(bytes.try_into().expect("four bytes")));
        io::Error::from_raw_os_error(-code)
    }

    /// None where it is too short to be one.
    fn found(&self) -> Option<Found<'a>> {
        let head = self.body.get(..MESSAGE)?;
        let id = Id(head[ID_AT..ID_AT + ID].try_into().expect("as many bytes"));
        let mut found = Found { family: head[0], state: head[1], id, info: None, congestion: None };
        let mut left = &self.body[MESSAGE..];
        while let Some((kind, value, rest)) = attribute(left) {
            match kind {
                INET_DIAG_INFO => found.info = Some(value),
                INET_DIAG_CONG => found.congestion = Some(value.split(|byte| *byte == 0).next().unwrap_or(value)),
                _ => {}
            }
            left = rest;
        }
        Some(found)
    }
}

/// The first attribute: its kind, its value, and what comes after it.
fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
    let value = bytes.get(4..length)?;
    Some((kind, value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The messages of what was received at once.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let head = self.0.get(..HEADER)?;
        let length = u32::from_ne_bytes(head[0..4].try_into().expect("four bytes")) as usize;
        let body = self.0.get(HEADER..length)?;
        let kind = u16::from_ne_bytes(head[4..6].try_into().expect("two bytes"));
        let sequence = u32::from_ne_bytes(head[8..12].try_into().expect("four bytes"));
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, sequence, body })
    }
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
    fn broken_answers_end_nothing() {
        assert!(attribute(&[3, 0, 1, 0]).is_none(), "shorter than its own head");
        assert!(attribute(&[9, 0, 1, 0, 1]).is_none(), "longer than what is there");
        assert_eq!(attribute(&[5, 0, 1, 0, 7]), Some((1, &[7][..], &[][..])));
        assert_eq!(Messages(&[40, 0, 0, 0, 20, 0]).count(), 0);
        let empty = Message { kind: 20, sequence: 0, body: &[0; 71] };
        assert!(empty.found().is_none());
    }
}
