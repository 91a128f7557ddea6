//! Sockets: a file that begins with what was asked and ends with what was seen, and errors that say what would have been right.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use common::*;

fn arguments<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let always = ["sockets", "--out", out, "--interval", "0.01", "--bytes", "1000000", "--samples", "1000"];
    [&always, more].concat()
}

#[test]
fn a_connection_is_counted_once_at_each_end() {
    let folder = Folder::new("sockets-file");
    let out = folder.path("sockets.tcp");
    let mut command = Command::new(PROBE);
    let mut child = command.args(arguments(&out, &["--peer", "127.0.0.1"])).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _server = listener.accept().unwrap();
    // SAFETY: our own child, which has not been waited for. The last sample is taken once it is told to end.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
    let content = fs::read(&out).unwrap();
    let head: serde_json::Value = serde_json::from_slice(content.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert_eq!((&head["format"], &head["interval_ns"]), (&"twinbed-sockets 1".into(), &10_000_000.into()));
    let at = content.windows(8).rposition(|bytes| bytes == b"{\"end\":{").unwrap();
    let end: serde_json::Value = serde_json::from_slice(&content[at..]).unwrap();
    // Other tests of this machine may have some too.
    assert!(end["sockets"].as_u64().unwrap() >= 2);
    assert!(end["opened"]["active"].as_u64().unwrap() > head["opened"]["active"].as_u64().unwrap());
    assert_eq!(end["dropped"], 0);
}

#[test]
fn what_it_cannot_do_is_an_error() {
    let folder = Folder::new("sockets-errors");
    let out = folder.path("out");
    for (arguments, message) in [
        (arguments(&out, &["--peer", "client"]), "--peer takes an address, not \"client\""),
        (arguments(&out, &["--without", "9-8"]), "--without takes a port or a range such as 2120-2122, not \"9-8\""),
        (vec!["sockets", "--interval", "0.01"], "--out is missing"),
        (
            vec!["sockets", "--out", &out, "--interval", "0", "--bytes", "1", "--samples", "1"],
            "--interval takes 0.001 to 3600 seconds, not 0",
        ),
        (
            vec!["sockets", "--out", &out, "--interval", "1", "--bytes", "0", "--samples", "1"],
            "--bytes and --samples are at least 1",
        ),
    ] {
        let output = Command::new(PROBE).args(&arguments).output().unwrap();
        assert!(!output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("twinbed-probe: {message}\n"));
    }
}
