//! Frames off one device and onto another, by packet sockets. Each has the header by which the kernel tells of work that it has left
//! to a NIC (`PACKET_VNET_HDR`), so that segments which are still joined stay joined and checksums unfinished, as on a veth pair.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;

use crate::sys::{self, check, NS_PER_S};

/// What may wait in the kernel on either side, bytes; without the machine's root as much as it gives everybody.
const BUFFER_BYTES: c_int = 64 << 20;
/// The longest joined segment and its headers.
pub const LONGEST_BYTES: usize = 10 + (1 << 16) + 256;
const ETHERTYPE_AT: usize = 10 + 12;

pub struct Incoming(OwnedFd);

pub struct Outgoing {
    socket: OwnedFd,
    at: libc::sockaddr_ll,
}

impl Incoming {
    pub fn open(device: &str) -> io::Result<Self> {
        let socket = opened()?;
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        enlarge(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        let at = address(device, (libc::ETH_P_ALL as u16).to_be())?;
        // SAFETY: the length is the structure's own.
        check(unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const at).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        })?;
        Ok(Incoming(socket))
    }

    /// The next frame, with when it arrived by the monotonic clock. `room` has LONGEST_BYTES.
    pub fn next(&self, room: &mut [u8]) -> io::Result<(i64, Vec<u8>)> {
        let mut control = [0_u64; 8];
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        let (count, stamp_ns) = loop {
            // SAFETY: every pointer is valid during the call and has its own length; control messages are walked by libc's macros.
            unsafe {
                let mut message: libc::msghdr = zeroed();
                message.msg_iov = &raw mut part;
                message.msg_iovlen = 1;
                message.msg_control = control.as_mut_ptr().cast();
                message.msg_controllen = size_of_val(&control) as _;
                let count = libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0);
                if count >= 0 {
                    break (count as usize, stamp_ns(&message));
                }
            }
            let error = io::Error::last_os_error();
            // A device that is down for a while is told of once.
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENETDOWN)) {
                return Err(error);
            }
        };
        let now_ns = sys::monotonic_ns();
        let waited_ns = stamp_ns.map_or(0, |stamp_ns| sys::clock_ns(libc::CLOCK_REALTIME) - stamp_ns);
        // A clock that is set between the two readings must not hold a frame for hours.
        let waited_ns = if (0..NS_PER_S).contains(&waited_ns) { waited_ns } else { 0 };
        Ok((now_ns - waited_ns, room[..count].to_vec()))
    }

    /// How many frames found no room, since it was last asked.
    pub fn missed(&self) -> io::Result<u64> {
        // SAFETY: the structure is plain numbers, and its length is given.
        unsafe {
            let mut counts: libc::tpacket_stats = zeroed();
            let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
            let into = (&raw mut counts).cast();
            check(libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                into,
                &raw mut length,
            ))?;
            Ok(counts.tp_drops.into())
        }
    }
}

impl Outgoing {
    pub fn open(device: &str) -> io::Result<Self> {
        let socket = opened()?;
        enlarge(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        Ok(Outgoing { socket, at: address(device, 0)? })
    }

    /// Whether the kernel took it. It waits while there is no room at a shaper below.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        let mut at = self.at;
        if let Some(&[high, low]) = frame.get(ETHERTYPE_AT..ETHERTYPE_AT + 2) {
            at.sll_protocol = u16::from_ne_bytes([high, low]);
        }
        loop {
            // SAFETY: pointers and lengths are of the same things.
            let count = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    frame.as_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw const at).cast(),
                    size_of::<libc::sockaddr_ll>() as libc::socklen_t,
                )
            };
            if count >= 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The queue below is full, which drops it as it would anybody's; or the device is down.
                Some(libc::ENOBUFS | libc::ENETDOWN | libc::ENETUNREACH | libc::EMSGSIZE | libc::EINVAL) => {
                    return Ok(false)
                }
                _ => return Err(error),
            }
        }
    }
}

fn opened() -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is ours alone. Protocol 0 receives nothing until the socket is bound.
    let socket =
        unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))?) };
    set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    Ok(socket)
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the option's value is an int, and its size is given.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}

fn enlarge(socket: &OwnedFd, by_force: c_int, politely: c_int) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, by_force, BUFFER_BYTES)
        .or_else(|_| set(socket, libc::SOL_SOCKET, politely, BUFFER_BYTES))
}

fn address(device: &str, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    let name = sys::c_string(device)?;
    // SAFETY: the name is NUL-terminated; sockaddr_ll is plain numbers.
    let (index, mut at) = unsafe { (libc::if_nametoindex(name.as_ptr()), zeroed::<libc::sockaddr_ll>()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    at.sll_family = libc::AF_PACKET as u16;
    at.sll_protocol = protocol;
    at.sll_ifindex = index as c_int;
    Ok(at)
}

/// When the kernel got it, by the clock of the day.
///
/// # Safety
/// `message` has come from recvmsg.
unsafe fn stamp_ns(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: these walk what the kernel wrote; a timespec may lie anywhere.
    unsafe {
        let mut entry = libc::CMSG_FIRSTHDR(message);
        while !entry.is_null() {
            if (*entry).cmsg_level == libc::SOL_SOCKET && (*entry).cmsg_type == libc::SCM_TIMESTAMPNS {
                let stamp: libc::timespec = libc::CMSG_DATA(entry).cast::<libc::timespec>().read_unaligned();
                return Some(stamp.tv_sec * NS_PER_S + stamp.tv_nsec);
            }
            entry = libc::CMSG_NXTHDR(message, entry);
        }
        None
    }
}
