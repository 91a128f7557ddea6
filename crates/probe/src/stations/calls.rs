//! The programs on the entry and the exit of system calls: what programs of this network namespace did to TCP sockets, and when
//! calls that wait came back.
//!
//! A call that moved bytes tells where its socket's stream stands once it is done: copied_seq after a read, write_seq after a
//! write. Which bytes it moved follows from that and its result, whatever other connections and threads do. A call is noted at
//! its entry and told at its exit; a close is told at its entry, since its socket is gone afterwards.

use super::probe_files::station;
use super::record::{self, socket, SOCKET};
use super::sending::Sending;
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{
    Condition, Function, Instruction, Operand, Operation, Register, Width, R0, R1, R2, R3, R4, R6, R7, R8, R9, STACK,
};
use crate::bpf::kernel::Map;
use crate::failure::Outcome;

use Condition::{Equal, Greater, GreaterOrEqual, NotEqual, SignedGreater};
use Operand::Number;
use Width::{Double, Half, Word};

type Named = (&'static str, Vec<Instruction>);

/// Threads in a call at once.
pub const THREADS: u32 = 16_384;
/// A value: when the call was entered, its station (0: none), its first argument.
pub const THREAD_BYTES: usize = 24;
const ENTRY_NS: i16 = 0;
const STATION: i16 = 8;
const DESCRIPTOR: i16 = 16;
/// On the stack, below a pointer.
const KEY: i16 = -16;
const VALUE: i16 = -40;
const FILE_TYPE: i32 = libc::S_IFMT as i32;
const SOCKET_FILE: i32 = libc::S_IFSOCK as i32;

/// What a thread may do to a socket, by what it does.
const CALLS: [(u8, &[i64]); 5] = [
    (station::READ, &[libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg]),
    (station::WRITE, &[libc::SYS_write, libc::SYS_writev, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendfile]),
    (station::CONNECT, &[libc::SYS_connect]),
    (station::CLOSE, &[libc::SYS_close, libc::SYS_shutdown]),
    (
        station::WAIT,
        &[
            libc::SYS_poll,
            libc::SYS_ppoll,
            libc::SYS_select,
            libc::SYS_pselect6,
            libc::SYS_epoll_wait,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
            libc::SYS_accept,
            libc::SYS_accept4,
        ],
    ),
];

pub fn programs(sending: &Sending, threads: &Map) -> Outcome<[Named; 2]> {
    Ok([("sys_exit", exit(sending, threads)?), ("sys_enter", entry(sending, threads)?)])
}

/// R9 becomes the thread that runs now; to `out` where it is of another network namespace.
fn own_thread(sending: &Sending, code: &mut Assembler, out: Label) -> Outcome<()> {
    code.call(Function::CurrentTaskBtf);
    code.copy(R9, R0);
    code.load(Double, R1, R9, sending.types.offset("task_struct", "nsproxy")?);
    code.load(Double, R1, R1, sending.types.offset("nsproxy", "net_ns")?);
    sending.only_own(code, R1, out)
}

/// R0 becomes the address of what is noted of the thread, or 0.
fn find(code: &mut Assembler, threads: &Map) {
    code.call(Function::CurrentPidTgid);
    code.store(Word, STACK, KEY, R0);
    code.look_up(threads, KEY);
}

/// sys_enter(registers, number).
fn entry(sending: &Sending, threads: &Map) -> Outcome<Vec<Instruction>> {
    let mut code = Assembler::default();
    let out = code.label();
    code.copy(R6, R1);
    code.load(Double, R7, R6, 8);
    select(&mut code, out);
    own_thread(sending, &mut code, out)?;
    code.load(Double, R6, R6, 0);
    code.load(Double, R7, R6, sending.types.offset("pt_regs", "di")?);
    let noted = code.label();
    code.jump_if(R8, NotEqual, Number(station::CLOSE.into()), noted);
    code.call(Function::KtimeGetNs);
    code.store(Double, STACK, SOCKET + record::TIME_NS, R0);
    code.store_number(Double, STACK, SOCKET + socket::END_NS, 0);
    code.store_number(Double, STACK, SOCKET + socket::VALUE, 0);
    socket_of(sending, &mut code, R7, out)?;
    sending.describe(&mut code, SOCKET, station::CLOSE);
    sending.socket(&mut code, R6, "write_seq", out)?;
    sending.send(&mut code, SOCKET, socket::BYTES);
    code.jump(out);

    code.here(noted);
    let known = code.label();
    find(&mut code, threads);
    code.jump_if(R0, NotEqual, Number(0), known);
    for member in [ENTRY_NS, STATION, DESCRIPTOR] {
        code.store_number(Double, STACK, VALUE + member, 0);
    }
    code.map(R1, threads);
    code.address(R2, STACK, KEY);
    code.address(R3, STACK, VALUE);
    code.set(R4, 0);
    code.call(Function::MapUpdate);
    code.look_up(threads, KEY);
    code.jump_if(R0, Equal, Number(0), out);
    code.here(known);
    code.copy(R6, R0);
    code.store(Double, R6, STATION, R8);
    code.store(Double, R6, DESCRIPTOR, R7);
    code.call(Function::KtimeGetNs);
    code.store(Double, R6, ENTRY_NS, R0);
    code.here(out);
    code.exit();
    Ok(code.finish())
}

/// R8 becomes the station of the call with the number in R7; to `out` for other calls.
fn select(code: &mut Assembler, out: Label) {
    let (large, possible, found) = (code.label(), code.label(), code.label());
    code.jump_if(R7, Greater, Number(63), large);
    let small = CALLS.iter().flat_map(|(_, numbers)| *numbers).filter(|number| **number < 64);
    code.set_wide(R1, small.fold(0, |mask, number| mask | 1 << number));
    code.operate(Operation::ShiftRight, R1, Operand::Register(R7));
    code.operate(Operation::And, R1, Number(1));
    code.jump_if(R1, Equal, Number(0), out);
    code.jump(possible);
    code.here(large);
    code.jump_if(R7, Greater, Number(1023), out);
    code.here(possible);
    for (station, numbers) in CALLS {
        code.set(R8, station.into());
        for number in numbers {
            code.jump_if(R7, Equal, Number(*number as i32), found);
        }
    }
    code.jump(out);
    code.here(found);
}

/// sys_exit(registers, value).
fn exit(sending: &Sending, threads: &Map) -> Outcome<Vec<Instruction>> {
    let mut code = Assembler::default();
    let out = code.label();
    code.load(Double, R6, R1, 8);
    // Most calls are others, and told soonest by their number.
    code.load(Double, R7, R1, 0);
    code.load(Double, R7, R7, sending.types.offset("pt_regs", "orig_ax")?);
    select(&mut code, out);
    own_thread(sending, &mut code, out)?;
    find(&mut code, threads);
    code.jump_if(R0, Equal, Number(0), out);
    code.load(Double, R8, R0, STATION);
    code.jump_if(R8, Equal, Number(0), out);
    code.store_number(Double, R0, STATION, 0);
    code.load(Double, R7, R0, DESCRIPTOR);
    code.load(Double, R1, R0, ENTRY_NS);
    code.store(Double, STACK, SOCKET + record::TIME_NS, R1);
    code.store(Double, STACK, SOCKET + socket::VALUE, R6);
    code.store_number(Double, STACK, SOCKET + socket::SEQUENCE, 0);
    let (tells, wait) = (code.label(), code.label());
    code.jump_if(R8, Greater, Number(station::WRITE.into()), tells);
    code.jump_if(R6, SignedGreater, Number(0), tells);
    code.jump(out);
    code.here(tells);
    code.call(Function::KtimeGetNs);
    code.store(Double, STACK, SOCKET + socket::END_NS, R0);
    code.jump_if(R8, Equal, Number(station::WAIT.into()), wait);
    socket_of(sending, &mut code, R7, out)?;
    let (read, complete) = (code.label(), code.label());
    code.jump_if(R8, Equal, Number(station::READ.into()), read);
    sending.socket(&mut code, R6, "write_seq", out)?;
    code.jump(complete);
    code.here(read);
    sending.socket(&mut code, R6, "copied_seq", out)?;
    code.here(complete);
    sending.describe(&mut code, SOCKET, 0);
    code.store(Double, STACK, SOCKET + record::STATION, R8);
    sending.send(&mut code, SOCKET, socket::BYTES);
    code.jump(out);
    code.here(wait);
    sending.describe(&mut code, SOCKET, station::WAIT);
    sending.send(&mut code, SOCKET, socket::COMMON.into());
    code.here(out);
    code.exit();
    Ok(code.finish())
}

/// R6 becomes the socket behind the descriptor, which a register has, of the thread in R9; to `out` where it is none.
fn socket_of(sending: &Sending, code: &mut Assembler, descriptor: Register, out: Label) -> Outcome<()> {
    let types = sending.types;
    code.operate(Operation::ShiftLeft, descriptor, Number(32));
    code.operate(Operation::ShiftRight, descriptor, Number(32));
    code.load(Double, R1, R9, types.offset("task_struct", "files")?);
    code.load(Double, R1, R1, types.offset("files_struct", "fdt")?);
    code.load(Word, R2, R1, types.offset("fdtable", "max_fds")?);
    code.jump_if(descriptor, GreaterOrEqual, Operand::Register(R2), out);
    code.load(Double, R6, R1, types.offset("fdtable", "fd")?);
    code.operate(Operation::ShiftLeft, descriptor, Number(3));
    code.operate(Operation::Add, R6, Operand::Register(descriptor));
    sending.follow(code, R6, R6, 0, out);
    sending.follow(code, R7, R6, types.offset("file", "f_inode")?, out);
    sending.copy(code, R7, types.offset("inode", "i_mode")?, record::POINTER, 2, out);
    code.load(Half, R1, STACK, record::POINTER);
    code.operate(Operation::And, R1, Number(FILE_TYPE));
    code.jump_if(R1, NotEqual, Number(SOCKET_FILE), out);
    sending.follow(code, R6, R6, types.offset("file", "private_data")?, out);
    sending.follow(code, R6, R6, types.offset("socket", "sk")?, out);
    Ok(())
}
