//! What keeps a container's programs from the machine: files of the whole kernel that they may only read, or not even that,
//! capabilities that they lose, and system calls that they are refused.
//!
//! The container's agent keeps its rights: it sets up the programs, and those that count (this file itself) need them. Its
//! programs run as root without what root needs to reach beyond its namespaces.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_long, c_ulong, sock_filter};

use crate::failure::{Outcome, Tried};
use crate::mounts::{mount, Detached, NO_DEVICES};
use crate::sys::{allow_run_first, check};

/// Where every container has this program, bound read-only.
const OWN_PATH: &str = "/usr/bin/twinbed-probe";
const OWN_NAME: &str = "twinbed-probe";

/// As the OCI's runtimes do (opencontainers/runtime-spec, and moby's default profile); /sys whole, as no setting is in it.
const READ_ONLY: [&str; 6] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/sys"];
const HIDDEN: [&str; 10] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/mtrr",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
];
const HIDDEN_FOLDERS: [&str; 5] =
    ["/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/devices/virtual/powercap", "/sys/firmware"];
/// Of the container's own network namespace: studies set it.
const WRITABLE: &str = "/proc/sys/net";

/// Capabilities by their numbers in linux/capability.h, with what needs them.
const KEPT: [u32; 11] = [
    0,  // CHOWN: servers give their folders to the user that they become
    1,  // DAC_OVERRIDE: root's files of other users
    3,  // FOWNER: the same
    4,  // FSETID: the same
    5,  // KILL: servers end workers that are other users'
    6,  // SETGID: nginx, sshd and tcpdump become other users
    7,  // SETUID: the same
    10, // NET_BIND_SERVICE: servers listen on port 80
    12, // NET_ADMIN: ip, tc, ethtool and sysctl on the container's own network
    13, // NET_RAW: tcpdump, ping, nmap and tcpreplay on the container's own network
    18, // SYS_CHROOT: sshd
];

/// With namespaces of their own programs would have all capabilities again, over more of the kernel than they need.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Linux 6.15; libc has no name for it.
const OPEN_TREE_ATTR: c_long = 467;

/// Refused with EPERM, as without the capability that they ask for; some ask for none.
const REFUSED: [c_long; 43] = [
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    // Namespaces; clone with their flags is refused too.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    // Its clocks.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    // What is shared by all users' processes, or has let programs out before.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kcmp,
    libc::SYS_process_vm_writev,
    libc::SYS_lookup_dcookie,
];

static DRAWN: AtomicBool = AtomicBool::new(false);

/// Closes the kernel's files to this mount namespace; from here on programs are bounded. The container's root is already its own.
pub fn draw() -> Outcome<()> {
    let network = Detached::of(WRITABLE)?;
    for path in READ_ONLY.into_iter().filter(|path| Path::new(path).exists()) {
        let copy = Detached::of(path)?;
        copy.make_read_only().tried(|| format!("make {path} read-only"))?;
        copy.attach_existing(path).tried(|| format!("bind on {path}"))?;
    }
    network.attach_existing(WRITABLE).tried(|| format!("bind on {WRITABLE}"))?;
    for path in HIDDEN.into_iter().filter(|path| Path::new(path).exists()) {
        let nothing = Detached::of("/dev/null")?;
        nothing.make_read_only().tried(|| format!("hide {path}"))?;
        nothing.attach_existing(path).tried(|| format!("hide {path}"))?;
    }
    for path in HIDDEN_FOLDERS.into_iter().filter(|path| Path::new(path).exists()) {
        mount("tmpfs", "tmpfs", path, libc::MS_RDONLY | NO_DEVICES, "size=0,mode=555")?;
    }
    DRAWN.store(true, Ordering::Relaxed);
    Ok(())
}

/// The path by which to run a program, and the filter of its system calls; none for this program itself, whose file is bound
/// read-only in a folder that cannot be renamed (root.rs).
pub fn of(name: &str) -> (&str, Option<Vec<sock_filter>>) {
    match name {
        _ if !DRAWN.load(Ordering::Relaxed) => (name, None),
        OWN_NAME | OWN_PATH => (OWN_PATH, None),
        _ => (name, Some(filter())),
    }
}

/// Of the process that calls it, for good; between fork and exec it makes system calls only.
pub fn cross(filter: &mut [sock_filter]) -> io::Result<()> {
    // SAFETY: the structs are those of linux/capability.h and linux/filter.h, and outlive the calls.
    unsafe {
        for capability in 0..64 {
            if !KEPT.contains(&capability)
                && libc::prctl(libc::PR_CAPBSET_READ, c_ulong::from(capability), 0, 0, 0) == 1
            {
                check(libc::prctl(libc::PR_CAPBSET_DROP, c_ulong::from(capability), 0, 0, 0))?;
            }
        }
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0, 0, 0))?;
        const VERSION_3: u32 = 0x2008_0522;
        let header = [VERSION_3, 0];
        let mut sets = [0u32; 6];
        check(libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) as c_int)?;
        // Effective, permitted, inheritable of the lower 32; then of the upper ones.
        let lower = KEPT.iter().fold(0, |bits, capability| bits | 1u32 << capability);
        let kept = [sets[0] & lower, sets[1] & lower, 0, 0, 0, 0];
        check(libc::syscall(libc::SYS_capset, header.as_ptr(), kept.as_ptr()) as c_int)?;
        allow_run_first(false);
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as c_ulong, 0, 0, 0))?;
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as c_ulong, &program, 0, 0))?;
    }
    Ok(())
}

/// A program over `struct seccomp_data` (seccomp(2)): number at 0, architecture at 4, arguments from 16 on.
fn filter() -> Vec<sock_filter> {
    const X86_64: u32 = 0xC000_003E;
    const X32: u32 = 0x4000_0000;
    let refuse = |errno: c_int| statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | errno as u32);
    let mut lines = vec![
        load(4),
        jump(libc::BPF_JEQ, X86_64, 1, 0),
        statement(libc::BPF_RET, libc::SECCOMP_RET_KILL_PROCESS),
        load(0),
        jump(libc::BPF_JGE, X32, 0, 1),
        refuse(libc::ENOSYS),
        // Its flags are in memory, where no filter can look: the C library then takes clone.
        jump(libc::BPF_JEQ, libc::SYS_clone3 as u32, 0, 1),
        refuse(libc::ENOSYS),
        jump(libc::BPF_JEQ, libc::SYS_clone as u32, 0, 4),
        load(16),
        jump(libc::BPF_JSET, NAMESPACES, 0, 1),
        refuse(libc::EPERM),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
        // To the hypervisor of a machine that is a guest itself: no network namespace divides these.
        jump(libc::BPF_JEQ, libc::SYS_socket as u32, 0, 4),
        load(16),
        jump(libc::BPF_JEQ, libc::AF_VSOCK as u32, 0, 1),
        refuse(libc::EAFNOSUPPORT),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
    ];
    for call in REFUSED {
        lines.push(jump(libc::BPF_JEQ, call as u32, 0, 1));
        lines.push(refuse(libc::EPERM));
    }
    lines.push(statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW));
    lines
}

fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(test: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt, jf, k }
}
