//! `init`: the first program of a guest, from its initramfs. It loads modules, puts an overlay over the disk, makes that the
//! root, and serves the agent on a virtio port. It is PID 1 all along.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent;
use crate::failure::{Failure, Outcome, Tried};
use crate::session::Ending;
use crate::{fw_cfg, mounts, port, sys, system_folders};

/// The program that goes on instead of the agent, where there is one.
const START: &str = "/start";
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// The folder that is collected. `testbeds/qemu/guest.py` repeats it.
const ARTIFACTS: &str = "/run/twinbed";
const DISK: &str = "/dev/vda";
const DISK_LIMIT: Duration = Duration::from_secs(10);
const CARRIER_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

/// Never returns: what ends PID 1 ends the guest.
pub fn main() -> ! {
    let Err(failure) = boot();
    // The console is the one of the kernel's command line. Without one there is nobody to tell.
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = io::Write::write_all(&mut console, format!("twinbed-probe init: {failure}\n").as_bytes());
    }
    sys::power_off()
}

fn boot() -> Outcome<std::convert::Infallible> {
    mounts::mount("proc", "proc", "/proc", mounts::NO_DEVICES, "")?;
    mounts::mount("sysfs", "sysfs", "/sys", mounts::NO_DEVICES, "")?;
    mounts::mount("devtmpfs", "devtmpfs", "/dev", libc::MS_NOSUID, "mode=755")?;
    if Path::new(START).exists() {
        return start();
    }
    let line = fs::read_to_string("/proc/cmdline").tried(|| "read /proc/cmdline")?;
    let port_name = parameter(&line, "twinbed.port")
        .ok_or_else(|| Failure::new("the kernel command line has no twinbed.port=NAME"))?;
    load_modules(parameter(&line, "twinbed.modules"))?;
    wait_for_disk()?;
    enter_root()?;
    sys::bring_up("lo").tried(|| "bring up lo")?;
    fs::create_dir(ARTIFACTS).tried(|| format!("create folder {ARTIFACTS}"))?;
    system_folders::in_container_image()?;
    warm(parameter(&line, "twinbed.warm"));
    bring_up(parameter(&line, "twinbed.up"))?;
    // A guest is saved while it waits here: what follows is read after it was resumed.
    let port = port::open(port_name)?;
    let told = match parameter(&line, "twinbed.told") {
        Some(text) => fw_cfg::read(text)?,
        None => line.clone(),
    };
    let host = parameter(&told, "twinbed.host").unwrap_or("guest");
    sys::set_hostname(host).tried(|| format!("set the hostname {host}"))?;
    let key = parameter(&told, "twinbed.key").map(String::from);
    agent::serve_both(port, Ending::PowerOff, key)
}

/// Runs programs, with commas between, that every guest runs first: their files are then in the memory that is saved, once for
/// all guests. How they end says nothing: it is their own start that counts.
fn warm(programs: Option<&str>) {
    for name in programs.into_iter().flat_map(|names| names.split(',')) {
        let quiet = || std::process::Stdio::null();
        let _ = std::process::Command::new(name)
            .arg("--version")
            .env("PATH", PATH)
            .stdin(quiet())
            .stdout(quiet())
            .stderr(quiet())
            .status();
    }
}

/// Brings up the NICs, with commas between, of a guest that is to be saved, and waits until each has found its link: an emulated
/// card takes up to two seconds to do so and to receive. They have nothing to send, without IPv6 and without an address.
fn bring_up(nics: Option<&str>) -> Outcome<()> {
    let names: Vec<&str> = nics.into_iter().flat_map(|names| names.split(',')).collect();
    for name in &names {
        let setting = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        fs::write(&setting, "1").tried(|| format!("write {setting}"))?;
        sys::bring_up(name).tried(|| format!("bring up {name}"))?;
    }
    let start = Instant::now();
    let has_link = |name: &&str| fs::read(format!("/sys/class/net/{name}/carrier")).is_ok_and(|text| text == b"1\n");
    while !names.iter().all(has_link) && start.elapsed() < CARRIER_LIMIT {
        thread::sleep(POLL);
    }
    Ok(())
}

/// A guest whose initramfs is its root file system, and that somebody else's client starts programs in.
fn start() -> Outcome<std::convert::Infallible> {
    load_modules(None)?;
    system_folders::complete_dev()?;
    system_folders::scratch_folders()?;
    let _ = mounts::mount("tracefs", "tracefs", "/sys/kernel/tracing", mounts::NO_DEVICES, "");
    sys::bring_up("lo").tried(|| "bring up lo")?;
    Err(std::process::Command::new(START).env_clear().exec()).tried(|| format!("start {START}"))
}

/// The value of `name=value` on the kernel's command line. The last one counts, as it does for the kernel.
fn parameter<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .filter_map(|word| word.split_once('='))
        .filter_map(|(key, value)| (key == name).then_some(value))
        .next_back()
}

#[derive(Debug, PartialEq)]
struct Module<'a> {
    path: &'a str,
    optional: bool,
    /// The modules that it is for, itself or others, with commas between; without any it is for all.
    of: Option<&'a str>,
}

impl Module<'_> {
    /// Whether it is for one of those that are wanted, with commas between. Where nobody says which, all are.
    fn wanted(&self, wanted: Option<&str>) -> bool {
        match (self.of, wanted) {
            (Some(of), Some(wanted)) => wanted.split(',').any(|name| of.split(',').any(|other| other == name)),
            _ => true,
        }
    }
}

/// Lines of `path [optional [modules that it is for]]`, in the order of loading. A module comes after those that it needs.
fn parse_modules(list: &str) -> Outcome<Vec<Module<'_>>> {
    list.lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .map(|words| match words[..] {
            [path] => Ok((path, false, None)),
            [path, "optional"] => Ok((path, true, None)),
            [path, "optional", of] => Ok((path, true, Some(of))),
            _ => Err(Failure::new(format!("/modules.list: line {words:?} is not `path [optional [modules]]`"))),
        })
        .map(|entry| entry.map(|(path, optional, of)| Module { path, optional, of }))
        .collect()
}

/// Loads the modules, but no optional one that is for others than `wanted`, and gives back the memory that their files take.
fn load_modules(wanted: Option<&str>) -> Outcome<()> {
    let list = fs::read_to_string("/modules.list").tried(|| "read /modules.list")?;
    for module in parse_modules(&list)? {
        let path = module.path;
        if module.wanted(wanted) {
            match load_module(path) {
                Err(error) if !module.optional && error.raw_os_error() != Some(libc::EEXIST) => {
                    return Err(error).tried(|| format!("load module {path}"));
                }
                _ => {}
            }
        }
        // A missing file has been an error above, unless it was optional.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

fn load_module(path: &str) -> io::Result<()> {
    const NO_PARAMETERS: &CStr = c"";
    let file = File::open(path)?;
    // SAFETY: the descriptor is open, and the parameters outlive the call.
    let loaded = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), NO_PARAMETERS.as_ptr(), 0) };
    sys::check(loaded as libc::c_int).map(drop)
}

/// Drivers find their devices some time after they are loaded.
fn wait_for_disk() -> Outcome<()> {
    let start = Instant::now();
    while !Path::new(DISK).exists() {
        if start.elapsed() > DISK_LIMIT {
            return Err(Failure::new(format!("{DISK} did not appear within {} s", DISK_LIMIT.as_secs())));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Puts a writable layer in memory over the disk, and changes to it.
fn enter_root() -> Outcome<()> {
    let kind = fs::read_to_string("/rootfs.type").tried(|| "read /rootfs.type")?;
    mounts::mount(kind.trim(), DISK, "/lower", libc::MS_RDONLY, "")?;
    mounts::mount("tmpfs", "tmpfs", "/layer", 0, "mode=755")?;
    for path in ["/layer/upper", "/layer/work"] {
        fs::create_dir(path).tried(|| format!("create folder {path}"))?;
    }
    let options = "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work";
    mounts::mount("overlay", "overlay", "/newroot", 0, options)?;
    for name in ["dev", "proc", "sys"] {
        mounts::move_mount(&format!("/{name}"), &format!("/newroot/{name}"))?;
    }
    // The root of an initramfs cannot be pivoted away: move over it instead.
    std::env::set_current_dir("/newroot").tried(|| "change to /newroot")?;
    mounts::move_mount(".", "/")?;
    std::os::unix::fs::chroot(".").tried(|| "make /newroot the root")?;
    std::env::set_current_dir("/").tried(|| "change to /")?;
    system_folders::complete_dev()?;
    system_folders::scratch_folders()?;
    // For instruments; a kernel may be built without it.
    let _ = mounts::mount("tracefs", "tracefs", "/sys/kernel/tracing", mounts::NO_DEVICES, "");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_parameters() {
        let line = "quiet twinbed.port=a panic=-1 twinbed.port=b twinbed.host=c1\n";
        assert_eq!(parameter(line, "twinbed.port"), Some("b"));
        assert_eq!(parameter(line, "twinbed.host"), Some("c1"));
        assert_eq!(parameter(line, "quiet"), None);
    }

    #[test]
    fn reads_the_module_list() {
        let module = |path, optional, of| Module { path, optional, of };
        assert_eq!(
            parse_modules("/m/a.ko\n\n/m/b.ko optional\n/m/c.ko optional c,d\n").unwrap(),
            [module("/m/a.ko", false, None), module("/m/b.ko", true, None), module("/m/c.ko", true, Some("c,d"))]
        );
        assert!(parse_modules("/m/a.ko maybe").is_err());
        assert!(parse_modules("/m/a.ko optional a b").is_err());
    }

    #[test]
    fn takes_the_modules_that_are_wanted() {
        let list = parse_modules("/m/a.ko\n/m/b.ko optional\n/m/c.ko optional c,d\n/m/d.ko optional d\n").unwrap();
        let taken = |wanted| list.iter().filter(|each| each.wanted(wanted)).map(|each| each.path).collect::<Vec<_>>();
        assert_eq!(taken(None), ["/m/a.ko", "/m/b.ko", "/m/c.ko", "/m/d.ko"]);
        assert_eq!(taken(Some("d")), ["/m/a.ko", "/m/b.ko", "/m/c.ko", "/m/d.ko"]);
        assert_eq!(taken(Some("x,c")), ["/m/a.ko", "/m/b.ko", "/m/c.ko"]);
        assert_eq!(taken(Some("")), ["/m/a.ko", "/m/b.ko"]);
    }
}
