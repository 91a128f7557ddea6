//! netlink(7): messages to and from the kernel, and their attributes. Layouts are of linux/netlink.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;

use crate::sys;

pub const HEADER: usize = 16;

pub struct Socket {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl Socket {
    pub fn open(protocol: c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the new descriptor is ours alone.
        let socket = unsafe { OwnedFd::from_raw_fd(sys::check(libc::socket(libc::AF_NETLINK, kind, protocol))?) };
        Ok(Socket { socket, answer: vec![0; 64 * 1024] })
    }

    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length are of one slice.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// What is received at once.
    pub fn receive(&mut self, flags: c_int) -> io::Result<Messages<'_>> {
        loop {
            let (buffer, length) = (self.answer.as_mut_ptr().cast(), self.answer.len());
            // SAFETY: pointer and length are of one vector, which nobody else has.
            let received = unsafe { libc::recv(self.socket.as_raw_fd(), buffer, length, flags) };
            match usize::try_from(received) {
                Ok(length) => return Ok(Messages(&self.answer[..length])),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Asks for all that a request describes; `each` is given the body of every answer.
    pub fn dump(&mut self, kind: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(&request(kind, libc::NLM_F_DUMP, 0, body))?;
        loop {
            for message in self.receive(0)? {
                match c_int::from(message.kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(message.error()),
                    _ => each(message.body),
                }
            }
        }
    }
}

pub fn request(kind: u16, flags: c_int, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

pub struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

impl Message<'_> {
    pub fn error(&self) -> io::Error {
        let code = self.body.get(..4).map_or(0, |bytes| i32::from_ne_bytes(bytes.try_into().expect("four bytes")));
        io::Error::from_raw_os_error(-code)
    }
}

/// The messages of what was received at once.
pub struct Messages<'a>(&'a [u8]);

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

/// The kind and value of each attribute.
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let length = u16::from_ne_bytes(self.0.get(..2)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(self.0.get(2..4)?.try_into().ok()?);
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_answers_end_nothing() {
        assert!(Attributes(&[3, 0, 1, 0]).next().is_none(), "shorter than its own head");
        assert!(Attributes(&[9, 0, 1, 0, 1]).next().is_none(), "longer than what is there");
        assert_eq!(Attributes(&[5, 0, 1, 0, 7]).collect::<Vec<_>>(), [(1, &[7][..])]);
        assert_eq!(Messages(&[40, 0, 0, 0, 20, 0]).count(), 0);
    }
}
