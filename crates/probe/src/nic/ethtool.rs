//! SIOCETHTOOL of netdevice(7): what a NIC's driver says of it. Layouts are of linux/ethtool.h, as words of 32 bits.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use serde::Serialize;

use crate::sys::{self, check};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GDRVINFO: u32 = 0x03;
const GCOALESCE: u32 = 0x0e;
const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const GCHANNELS: u32 = 0x3c;
const SS_FEATURES: u32 = 4;
/// Where each text of struct ethtool_drvinfo begins.
const DRIVER_AT: usize = 4;
const FIRMWARE_AT: usize = 68;
const BUS_AT: usize = 100;
/// ETH_GSTRING_LEN, and of the texts of struct ethtool_drvinfo.
const TEXT: usize = 32;
/// Words of struct ethtool_coalesce, by the names that `ethtool -C` has for them.
const COALESCING: [(&str, usize); 4] = [("adaptive-rx", 10), ("adaptive-tx", 11), ("rx-usecs", 1), ("tx-usecs", 5)];

#[derive(Serialize)]
pub struct State {
    driver: Option<String>,
    firmware: Option<String>,
    bus: Option<String>,
    /// By the kernel's names, whether each is on.
    features: Option<BTreeMap<String, bool>>,
    /// Those of them that can be changed, as they were asked for.
    wanted_features: Option<BTreeMap<String, bool>>,
    /// 0 also where the driver cannot set it.
    coalescing: Option<BTreeMap<&'static str, u32>>,
    /// Pairs of queues in use.
    queues: Option<u32>,
}

pub fn read(device: &str) -> io::Result<State> {
    let nic = Nic::open(device)?;
    let about: Vec<u8> = nic.ask(GDRVINFO, 49, &[]).iter().flatten().flat_map(|word| word.to_ne_bytes()).collect();
    let (features, wanted_features) = nic.features().unzip();
    let coalescing = nic.ask(GCOALESCE, 23, &[]);
    Ok(State {
        driver: text(&about, DRIVER_AT),
        firmware: text(&about, FIRMWARE_AT),
        bus: text(&about, BUS_AT),
        features,
        wanted_features,
        coalescing: coalescing.map(|words| COALESCING.map(|(name, at)| (name, words[at])).into()),
        // A NIC that can have none says that it has 0.
        queues: nic.ask(GCHANNELS, 9, &[]).filter(|words| words[4] > 0).map(|words| words[8]),
    })
}

struct Nic {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Nic {
    fn open(device: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        if device.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the new descriptor is ours alone.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?)
        };
        Ok(Nic { socket, name })
    }

    /// The answer to a command, of `length` words, some of which are `given`. None where the driver or the kernel has none.
    fn ask(&self, command: u32, length: usize, given: &[(usize, u32)]) -> Option<Vec<u32>> {
        let mut words = vec![0; length];
        words[0] = command;
        for (at, word) in given {
            words[*at] = *word;
        }
        // SAFETY: ifreq is plain data; the kernel writes what the command's structure holds, and callers give as many words.
        let answered = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            request.ifr_name = self.name;
            request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
            sys::check(libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &mut request))
        };
        answered.ok().map(|_| words)
    }

    /// Whether each is on; and of those that can be changed, whether it was asked for.
    fn features(&self) -> Option<(BTreeMap<String, bool>, BTreeMap<String, bool>)> {
        let count = self.ask(GSSET_INFO, 5, &[(2, 1 << SS_FEATURES)])?[4];
        let (length, blocks) = (3 + count as usize * TEXT / 4, count.div_ceil(32));
        let strings = self.ask(GSTRINGS, length, &[(1, SS_FEATURES), (2, count)])?;
        let names: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let answer = self.ask(GFEATURES, 2 + 4 * blocks as usize, &[(1, blocks)])?;
        let (mut on, mut wanted) = (BTreeMap::new(), BTreeMap::new());
        for at in 0..count as usize {
            // A bit has no name where the kernel does not use it.
            let Some(name) = text(&names, at * TEXT) else { continue };
            let [available, requested, active, never_changed] =
                [0, 1, 2, 3].map(|word| answer[2 + at / 32 * 4 + word] >> (at % 32) & 1 == 1);
            if available && !never_changed {
                wanted.insert(name.clone(), requested);
            }
            on.insert(name, active);
        }
        Some((on, wanted))
    }
}

/// A text of at most TEXT bytes, which ends at a NUL; None where it is empty.
fn text(bytes: &[u8], at: usize) -> Option<String> {
    let field = bytes.get(at..at + TEXT)?;
    let text = String::from_utf8_lossy(field.split(|byte| *byte == 0).next()?);
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
