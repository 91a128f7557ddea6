//! `reach`: whether packets pass to an address and back, by asking a TCP port on which nobody need listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};

/// TCP's port for multiplexing services: assigned, and used by nobody.
const PORT: u16 = 1;
/// Between one attempt that nobody has answered by ARP, which takes the kernel some seconds, and the next.
const PAUSE: Duration = Duration::from_millis(50);

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let address: Ipv4Addr = number("--address", &arguments.required("--address")?)?;
    let text = arguments.required("--seconds")?;
    arguments.finish()?;
    let limit = Duration::try_from_secs_f64(number("--seconds", &text)?)
        .map_err(|_| Failure::new(format!("--seconds takes seconds, not {text}")))?;
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(PAUSE);
        match TcpStream::connect_timeout(&SocketAddr::from((address, PORT)), left) {
            Ok(_) => return Ok(()),
            // A refusal is an answer.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            // There is no neighbour yet: a link or a switch's port may need longer than the kernel waits.
            Err(error) if error.kind() == io::ErrorKind::HostUnreachable && Instant::now() < end => sleep(PAUSE),
            Err(error) => return Err(error).tried(|| format!("reach {address}")),
        }
    }
}
