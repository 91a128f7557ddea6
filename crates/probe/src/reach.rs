//! REACH: whether packets pass to an address and back, by asking a TCP port on which nobody need listen.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::request::{Reach, Reached};

/// TCP's port for multiplexing services: assigned, and used by nobody.
const PORT: u16 = 1;
/// Between one attempt that nobody has answered by ARP, which takes the kernel some seconds, and the next.
const PAUSE: Duration = Duration::from_millis(50);

pub fn ask(request: &Reach) -> Outcome<Reached> {
    let limit = Duration::try_from_secs_f64(request.limit_s)
        .map_err(|error| Failure::new(format!("limit_s {}: {error}", request.limit_s)))?;
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(PAUSE);
        match TcpStream::connect_timeout(&SocketAddr::from((request.address, PORT)), left) {
            Ok(_) => return Ok(Reached { reached: true }),
            // A refusal is an answer.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(Reached { reached: true }),
            // There is no neighbour yet: a link or a switch's port may need longer than the kernel waits.
            Err(error) if error.kind() == io::ErrorKind::HostUnreachable && Instant::now() < end => sleep(PAUSE),
            Err(_) => return Ok(Reached { reached: false }),
        }
    }
}
