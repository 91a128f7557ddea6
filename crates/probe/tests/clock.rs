//! Clock: a reading when it starts and one when it is told to end, of this kernel.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::*;

#[test]
fn tells_whose_clock_it_is_at_both_ends() {
    let folder = std::env::temp_dir().join(format!("twinbed-clock-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let out = folder.join("clock.json");
    let mut child = Command::new(PROBE)
        .args(["clock", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // SAFETY: a signal to a child of ours that was not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    assert!(child.wait().unwrap().success());

    let text = fs::read_to_string(&out).unwrap();
    let readings: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(readings.len(), 2);
    assert!(readings.iter().all(|reading| reading["boot_id"] == boot_id.trim()));
    assert!(readings[0]["monotonic_s"].as_f64() <= readings[1]["monotonic_s"].as_f64());
    fs::remove_dir_all(&folder).unwrap();
}
