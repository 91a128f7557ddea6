//! `reach`: whether packets pass to an address and back, by asking a TCP port on which nobody need listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};

/// TCP's port for multiplexing services: assigned, and used by nobody.
const PORT: u16 = 1;

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let address: Ipv4Addr = number("--address", &arguments.required("--address")?)?;
    let text = arguments.required("--seconds")?;
    arguments.finish()?;
    let limit = Duration::try_from_secs_f64(number("--seconds", &text)?)
        .map_err(|_| Failure::new(format!("--seconds takes seconds, not {text}")))?;
    match TcpStream::connect_timeout(&SocketAddr::from((address, PORT)), limit) {
        Ok(_) => Ok(()),
        // A refusal is an answer.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error).tried(|| format!("reach {address}")),
    }
}
