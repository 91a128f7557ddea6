//! How often and how long each CPU was in each of its idle states (Documentation/admin-guide/pm/cpuidle.rst of Linux).
//!
//! Lines are `cpu0 state1 USAGE TIME_US NAME`; before them come `driver NAME`, `governor NAME` and `guest_halt_poll_ns NS`, each where the
//! kernel has it. A guest whose governor is haltpoll polls for so long before it stops a CPU
//! (Documentation/virt/guest-halt-polling.rst).

use std::fmt::Write;
use std::fs;
use std::path::Path;

const CPUS: &str = "sys/devices/system/cpu";
const SETTINGS: [(&str, &str); 3] = [
    ("driver", "sys/devices/system/cpu/cpuidle/current_driver"),
    ("governor", "sys/devices/system/cpu/cpuidle/current_governor"),
    ("guest_halt_poll_ns", "sys/module/haltpoll/parameters/guest_halt_poll_ns"),
];

/// `None` where the kernel counts no idle states.
pub fn text() -> Option<String> {
    below(Path::new("/"))
}

fn below(root: &Path) -> Option<String> {
    let read = |path: &Path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let mut states = String::new();
    let entries = fs::read_dir(root.join(CPUS)).ok()?.flatten();
    let number = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
    let mut cpus: Vec<u32> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    cpus.sort_unstable();
    for cpu in cpus {
        for state in 0.. {
            let folder = root.join(CPUS).join(format!("cpu{cpu}/cpuidle/state{state}"));
            let [usage, time_us, name] = ["usage", "time", "name"].map(|file| read(&folder.join(file)));
            let (Some(usage), Some(time_us), Some(name)) = (usage, time_us, name) else { break };
            // Writing to a String does not fail.
            let _ = writeln!(states, "cpu{cpu} state{state} {usage} {time_us} {name}");
        }
    }
    if states.is_empty() {
        return None;
    }
    let settings = SETTINGS.iter().filter_map(|(name, path)| Some(format!("{name} {}\n", read(&root.join(path))?)));
    Some(settings.collect::<String>() + &states)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as the kernel has them, of a guest with two CPUs.
    #[test]
    fn every_state_of_every_cpu_has_a_line() {
        let root = std::env::temp_dir().join(format!("twinbed-idle-states-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(below(&root), None);
        for cpu in [0, 1] {
            for (state, name, usage) in [(0, "POLL", 3), (1, "haltpoll idle", 40 + cpu)] {
                for (file, text) in
                    [("name", name.to_owned()), ("usage", usage.to_string()), ("time", "700".to_owned())]
                {
                    write(&format!("{CPUS}/cpu{cpu}/cpuidle/state{state}/{file}"), &format!("{text}\n"));
                }
            }
        }
        write(&format!("{CPUS}/cpufreq/boost"), "1\n");
        write(SETTINGS[1].1, "haltpoll\n");
        write(SETTINGS[2].1, "200000\n");
        let found = below(&root);
        fs::remove_dir_all(&root).unwrap();
        let states = "cpu0 state0 3 700 POLL\ncpu0 state1 40 700 haltpoll idle\ncpu1 state0 3 700 POLL\ncpu1 state1 41 700 haltpoll idle\n";
        assert_eq!(found.unwrap(), format!("governor haltpoll\nguest_halt_poll_ns 200000\n{states}"));
    }
}
