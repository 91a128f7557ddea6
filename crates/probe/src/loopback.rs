//! A control stream over TCP on this host's own loopback, for a host that a tunnel leads to.
//!
//! The tunnel's far end may be open to a whole network, so what connects must begin with a key.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::failure::{Outcome, Tried};
use crate::sys;

/// How long one that connects may take to say its key. Others wait meanwhile.
const KEY_LIMIT: Duration = Duration::from_secs(2);

/// Listens on 127.0.0.1 alone. A guest that nobody has configured yet has its loopback down.
pub fn listen(port: u16) -> Outcome<TcpListener> {
    sys::bring_up("lo").tried(|| "bring up lo")?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).tried(|| format!("listen on 127.0.0.1:{port}"))
}

/// The first stream that begins with the key, after the key. Others are closed.
pub fn accept(listener: &TcpListener, key: &[u8]) -> Outcome<File> {
    loop {
        let (stream, _) = listener.accept().tried(|| "accept a connection")?;
        if says(&stream, key).unwrap_or(false) {
            return Ok(File::from(OwnedFd::from(stream)));
        }
    }
}

fn says(mut stream: &TcpStream, key: &[u8]) -> std::io::Result<bool> {
    stream.set_read_timeout(Some(KEY_LIMIT))?;
    let mut first = vec![0; key.len()];
    stream.read_exact(&mut first)?;
    stream.set_read_timeout(None)?;
    stream.set_nodelay(true)?;
    Ok(first == key)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_who_has_the_key_is_served() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let mut strangers = Vec::new();
        for said in [&b"wrong-key"[..], b"key"] {
            let mut stranger = TcpStream::connect(to).unwrap();
            stranger.write_all(said).unwrap();
            stranger.shutdown(std::net::Shutdown::Write).unwrap();
            strangers.push(stranger);
        }
        let mut controller = TcpStream::connect(to).unwrap();
        controller.write_all(b"right-key and a frame").unwrap();
        controller.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = String::new();
        accept(&listener, b"right-key").unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, " and a frame");
        for mut stranger in strangers {
            let mut nothing = Vec::new();
            let _ = stranger.read_to_end(&mut nothing);
            assert!(nothing.is_empty());
        }
    }
}
