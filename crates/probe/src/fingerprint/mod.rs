//! `fingerprint`: what gives a host away. `machine` looks at its own machine; `http` and `link` ask another host of the lab, by the
//! address that they are given and no other.
//!
//! Each writes one JSON object to the file that `--out` names. What cannot be had is null.

mod http;
mod link;
mod machine;

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

use serde::Serialize;

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let what = arguments.word();
    let path = arguments.required("--out")?;
    match what.as_deref() {
        Some("machine") => {
            arguments.finish()?;
            write(&machine::read(), &path)
        }
        Some("http") => {
            let address: Ipv4Addr = number("--address", &arguments.required("--address")?)?;
            let port: u16 = number("--port", &arguments.required("--port")?)?;
            arguments.finish()?;
            write(&http::ask(SocketAddr::from((address, port))), &path)
        }
        Some("link") => {
            let address = number("--address", &arguments.required("--address")?)?;
            arguments.finish()?;
            write(&link::ask(address), &path)
        }
        _ => Err(Failure::new("fingerprint takes machine, http or link")),
    }
}

fn write(content: &impl Serialize, path: &str) -> Outcome<()> {
    let mut out = File::create(path).tried(|| format!("create {path}"))?;
    let text = serde_json::to_vec(content).map_err(io::Error::from).tried(|| "write JSON")?;
    out.write_all(&text).tried(|| format!("write {path}"))
}
