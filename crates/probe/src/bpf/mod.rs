//! eBPF without a compiler: programs assembled here, loaded by bpf() with their maps, and the kernel's types (BTF).

pub mod assembler;
pub mod instruction;
#[cfg(test)]
pub mod interpreter;
pub mod kernel;
pub mod ring;
pub mod types;

/// Until Linux 5.11 maps count as locked memory. Where this is refused, making them tells.
pub fn lift_memory_limit() {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is a valid one.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &unlimited) };
}
