//! What a program on a host sees of its machine: what detectors of virtual machines look at.
//!
//! Costs are medians of batches, so that an interruption does not count. CPUID traps into a hypervisor, so that its cost tells of
//! one even where it hides (Ferrie 2007, "Attacks on Virtual Machine Emulators").

use std::arch::x86_64::{_rdtsc, CpuidResult};
use std::fs::{read_dir, read_link, read_to_string};
use std::hint::black_box;
use std::path::Path;

use serde::Serialize;

use crate::sys;

const BATCHES: usize = 101;
const BATCH: u32 = 100;
const DMI: [&str; 6] = ["bios_vendor", "bios_version", "sys_vendor", "product_name", "board_vendor", "chassis_vendor"];

#[derive(Serialize)]
pub struct Machine {
    cpuid_hypervisor: bool,
    cpuid_hypervisor_vendor: Option<String>,
    cpu_vendor: String,
    cpu_model: Option<String>,
    cpu_flags: Option<Vec<String>>,
    dmi: Vec<(String, Option<String>)>,
    pci_ids: Option<Vec<String>>,
    clock_source: Option<String>,
    /// Name, driver, first three bytes of the MAC address.
    net_devices: Vec<NetDevice>,
    block_devices: Option<Vec<String>>,
    /// Of a clock_gettime(2), an RDTSC, a CPUID.
    timer_cost_s: f64,
    rdtsc_cost_s: f64,
    cpuid_cost_s: f64,
}

#[derive(Serialize)]
struct NetDevice {
    name: String,
    driver: Option<String>,
    mac_vendor: Option<String>,
}

pub fn read() -> Machine {
    let features = cpuid(1);
    let cpuid_hypervisor = features.ecx >> 31 & 1 == 1;
    let vendor = cpuid(0);
    let cpus = read_to_string("/proc/cpuinfo").unwrap_or_default();
    Machine {
        cpuid_hypervisor,
        cpuid_hypervisor_vendor: cpuid_hypervisor.then(|| {
            let leaf = cpuid(0x4000_0000);
            letters(&[leaf.ebx, leaf.ecx, leaf.edx])
        }),
        cpu_vendor: letters(&[vendor.ebx, vendor.edx, vendor.ecx]),
        cpu_model: field(&cpus, "model name").map(str::to_owned),
        cpu_flags: field(&cpus, "flags").map(|flags| {
            let mut flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
            flags.sort_unstable();
            flags
        }),
        dmi: DMI.iter().map(|name| ((*name).to_owned(), line(&format!("/sys/class/dmi/id/{name}")))).collect(),
        pci_ids: entries("/sys/bus/pci/devices").map(|devices| {
            let id = |device: &String, part| line(&format!("/sys/bus/pci/devices/{device}/{part}"));
            let both = |device: &String| Some((id(device, "vendor")?, id(device, "device")?));
            let plain = |text: String| text.trim_start_matches("0x").to_owned();
            let mut ids: Vec<String> = devices
                .iter()
                .filter_map(both)
                .map(|(vendor, device)| format!("{}:{}", plain(vendor), plain(device)))
                .collect();
            ids.sort_unstable();
            ids
        }),
        clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        net_devices: entries("/sys/class/net").unwrap_or_default().into_iter().map(net_device).collect(),
        block_devices: entries("/sys/block"),
        timer_cost_s: cost_s(sys::monotonic_ns),
        // SAFETY: reading the time stamp counter touches no memory.
        rdtsc_cost_s: cost_s(|| unsafe { _rdtsc() }),
        cpuid_cost_s: cost_s(|| cpuid(0)),
    }
}

#[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every CPU of this architecture has the instruction.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}

fn letters(registers: &[u32]) -> String {
    let bytes = registers.iter().flat_map(|register| register.to_le_bytes());
    bytes.filter(|byte| byte.is_ascii_graphic() || *byte == b' ').map(char::from).collect()
}

/// Seconds that one takes: the median of batches.
fn cost_s<T>(one: impl Fn() -> T) -> f64 {
    let mut batches: Vec<i64> = (0..BATCHES)
        .map(|_| {
            let began = sys::monotonic_ns();
            (0..BATCH).for_each(|_| drop(black_box(one())));
            sys::monotonic_ns() - began
        })
        .collect();
    batches.sort_unstable();
    batches[BATCHES / 2] as f64 / f64::from(BATCH) / 1e9
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn line(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Names in a folder, sorted.
fn entries(folder: &str) -> Option<Vec<String>> {
    let entries = read_dir(folder).ok()?.filter_map(Result::ok);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Some(names)
}

fn net_device(name: String) -> NetDevice {
    let home = format!("/sys/class/net/{name}");
    let driver = read_link(Path::new(&home).join("device/driver")).ok();
    let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let mac = line(&format!("{home}/address")).filter(|mac| mac.len() == 17);
    NetDevice { driver, mac_vendor: mac.and_then(|mac| mac.get(..8).map(str::to_owned)), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = read();
        let flags = machine.cpu_flags.unwrap();
        // The kernel's own reading of the same bit.
        assert_eq!(machine.cpuid_hypervisor, flags.iter().any(|flag| flag == "hypervisor"));
        let vendor = read_to_string("/proc/cpuinfo").unwrap();
        assert_eq!(Some(machine.cpu_vendor.as_str()), field(&vendor, "vendor_id"));
        assert!(machine.timer_cost_s > 0.0 && machine.cpuid_cost_s > 0.0 && machine.rdtsc_cost_s > 0.0);
        assert!(machine.net_devices.iter().any(|device| device.name == "lo" && device.driver.is_none()));
    }
}
