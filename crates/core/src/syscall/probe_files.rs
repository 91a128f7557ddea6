//! What the files of `twinbed-probe syscalls` look like (docs/probe/SYSCALLS.md), as far as writer and reader must agree.
//!
//! This file stands alone: crates/probe includes it by its path, since the probe needs nothing else of this crate.

/// The first bytes of a trace; the last but one is the version.
pub const TRACE_MAGIC: [u8; 8] = *b"\x89TBSYS\x01\n";

/// A block's kind and the length of its body.
pub const BLOCK_HEADER_BYTES: usize = 5;

/// The kinds of a trace's blocks.
pub mod block {
    pub const HEADER: u8 = b'H';
    pub const STREAM: u8 = b'S';
    pub const CALLS: u8 = b'C';
    pub const LOST: u8 = b'L';
    pub const STREAM_END: u8 = b'E';
    pub const END: u8 = b'Z';
}

/// The first word of a count file.
pub const COUNT_MAGIC: &str = "twinbed-syscalls-count";
/// The second word, as it is written now. Version 1 timed all calls that returned.
pub const COUNT_VERSION: &str = "2";

/// Hands the system calls whose positive exit value is a number of bytes to a macro, by the names of libc's constants.
macro_rules! calls_that_move_bytes {
    ($macro:ident) => {
        $macro! {
            SYS_read SYS_write SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2
            SYS_sendfile SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_splice SYS_tee SYS_vmsplice SYS_copy_file_range
            SYS_process_vm_readv
        }
    };
}
pub(crate) use calls_that_move_bytes;
