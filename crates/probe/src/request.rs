//! The JSON bodies of requests and answers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome};

pub fn parse<'a, T: Deserialize<'a>>(what: &str, payload: &'a [u8]) -> Outcome<T> {
    serde_json::from_slice(payload).map_err(|error| Failure::new(format!("malformed {what} request: {error}")))
}

#[derive(Serialize)]
pub struct Hello {
    /// What the controller gave this agent to show that it is the one it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub version: &'static str,
    pub pid: u32,
    pub hostname: String,
    pub kernel: String,
    pub uid: u32,
    /// Inode number of the agent's network namespace, which identifies it in any other namespace.
    pub netns: Option<u64>,
    pub monotonic_s: f64,
    pub realtime_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    pub argv: Vec<String>,
    pub env: Option<BTreeMap<String, String>>,
    pub cwd: Option<String>,
    pub cpus: Option<Vec<usize>>,
    /// The program is brought up, and held before its first instruction until RELEASE.
    #[serde(default)]
    pub held: bool,
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    #[serde(default)]
    pub stdin: bool,
    pub cgroups: Option<Vec<String>>,
    pub netns_of: Option<u32>,
}

#[derive(Serialize)]
pub struct Started {
    pub pid: u32,
}

#[derive(Serialize, Clone)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub usage: Usage,
    pub max_rss_bytes: u64,
    pub started_monotonic_s: f64,
    pub ended_monotonic_s: f64,
}

/// CPU time and context switches of a program, and of what it started.
#[derive(Serialize, Clone, Copy, Default)]
pub struct Usage {
    pub cpu_s: f64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageOf {
    pub pid: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub signal: i32,
    #[serde(default)]
    pub group: bool,
}

/// When a held program starts; one whose moment has passed starts at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub at_monotonic_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    pub path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    pub device: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub path: String,
    pub mode: Option<u32>,
    #[serde(default)]
    pub parents: bool,
}

#[derive(Serialize)]
pub struct Bytes {
    pub bytes: u64,
}

#[derive(Serialize)]
pub struct Listing {
    pub entries: Vec<Entry>,
}

#[derive(Serialize)]
pub struct Entry {
    pub name: String,
    pub bytes: u64,
    pub kind: &'static str,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listening {
    pub port: u16,
    pub protocol: Protocol,
    pub limit_s: f64,
}

#[derive(Serialize)]
pub struct Waited {
    pub waited_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    pub address: Ipv4Addr,
    pub limit_s: f64,
}

#[derive(Serialize)]
pub struct Reached {
    pub reached: bool,
}

#[derive(Serialize)]
pub struct Clocks {
    pub monotonic_s: f64,
    pub realtime_s: f64,
}

/// To a guest that was resumed from a snapshot, before anything else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    pub realtime_s: f64,
    /// 32 random bytes that no other guest is given, in hexadecimal digits.
    pub entropy: String,
}

/// What no two guests have in common: the new boot id, and random numbers that nothing else has used.
#[derive(Serialize)]
pub struct Settled {
    pub boot_id: String,
    pub random: String,
}

#[derive(Serialize)]
pub struct Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_null_mean_the_same() {
        let short: Exec = parse("EXEC", br#"{"argv":["true"]}"#).unwrap();
        assert!(short.cwd.is_none() && !short.stdin);
        let long = br#"{"argv":["true"],"env":null,"cwd":null,"cpus":null,"held":false,"stdout":null,
            "stderr":null,"stdin":false,"cgroups":null,"netns_of":null}"#;
        parse::<Exec>("EXEC", long).unwrap();
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let failure = parse::<Path>("READ", br#"{"file":"x"}"#).err().unwrap();
        assert!(failure.message.contains("`file`"), "{failure}");
    }
}
