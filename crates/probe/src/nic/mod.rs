//! A NIC as its kernel describes it: what `ethtool`, `tc` and `ip` print of it, without the time that it takes an emulated guest to
//! start them. A fact that the kernel does not tell is null.

mod ethtool;
mod rtnetlink;

use serde::Serialize;

use crate::failure::{Outcome, Tried};

#[derive(Serialize)]
pub struct State {
    #[serde(flatten)]
    of_driver: ethtool::State,
    #[serde(flatten)]
    of_network: rtnetlink::State,
}

pub fn read(device: &str) -> Outcome<State> {
    let wrong = || format!("read the state of the NIC {device:?}");
    Ok(State { of_driver: ethtool::read(device).tried(wrong)?, of_network: rtnetlink::read(device).tried(wrong)? })
}
