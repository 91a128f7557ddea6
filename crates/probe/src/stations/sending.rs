//! What the programs have in common: whose a packet or a call is, and putting a record into the ring.

use super::record::{self, socket, SOCKET};
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Function, Operand, Operation, Register, Width, R0, R1, R2, R3, R4, STACK};
use crate::bpf::kernel::Map;
use crate::bpf::types::Types;
use crate::failure::Outcome;

use Condition::{Equal, Greater, NotEqual};
use Operand::Number;
use Width::{Double, Half, Word};

const TCP: i32 = libc::IPPROTO_TCP;
/// The reader is woken when so much of the ring is filled.
const WAKE_SHARE: usize = 4;

pub struct Sending<'a> {
    pub types: &'a Types,
    pub ring: &'a Map,
    /// One number: records for which the ring had no room.
    pub lost: &'a Map,
    /// The inode of the network namespace.
    pub namespace: i32,
    pub ring_bytes: usize,
    /// Of connections.
    pub share: f64,
}

impl Sending<'_> {
    /// Goes to `out` where the `struct net` whose address is in the register, which is lost, is another one.
    pub fn only_own(&self, code: &mut Assembler, net: Register, out: Label) -> Outcome<()> {
        let inode = self.types.offset("net", "ns")? + self.types.offset("ns_common", "inum")?;
        code.load(Word, net, net, inode);
        // Both are 32 bits, of which the number's sign fills the rest.
        code.set(R0, self.namespace);
        code.operate(Operation::ShiftLeft, R0, Number(32));
        code.operate(Operation::ShiftRight, R0, Number(32));
        code.jump_if(net, NotEqual, Operand::Register(R0), out);
        Ok(())
    }

    /// Goes to `out` where a connection is not in the sample. On the stack are four bytes of each address, and the ports one behind
    /// the other; they are combined so that both directions and both hosts give the same.
    pub fn sample(&self, code: &mut Assembler, [one, other]: [i16; 2], ports: i16, out: Label) {
        if self.share == 1.0 {
            return;
        }
        code.load(Word, R1, STACK, one);
        code.load(Word, R2, STACK, other);
        code.operate(Operation::Add, R1, Operand::Register(R2));
        code.load(Half, R3, STACK, ports);
        code.load(Half, R4, STACK, ports + 2);
        code.operate(Operation::Add, R3, Operand::Register(R4));
        code.operate(Operation::ShiftLeft, R3, Number(40));
        code.operate(Operation::Add, R1, Operand::Register(R3));
        // Knuth's multiplicative hash: the upper half of the product with 2^64 over the golden ratio.
        code.set_wide(R2, 0x9e37_79b9_7f4a_7c15);
        code.operate(Operation::Multiply, R1, Operand::Register(R2));
        code.operate(Operation::ShiftRight, R1, Number(33));
        code.jump_if(R1, Greater, Number((self.share * f64::from(i32::MAX)) as i32), out);
    }

    /// Copies so many bytes from the address in `from`, plus `offset`, to the stack at `to`; to `failed` where that fails.
    pub fn copy(&self, code: &mut Assembler, from: Register, offset: i16, to: i16, bytes: i32, failed: Label) {
        code.address(R3, from, offset);
        code.address(R1, STACK, to);
        code.set(R2, bytes);
        code.call(Function::ProbeReadKernel);
        code.jump_if(R0, NotEqual, Number(0), failed);
    }

    /// The pointer at the address in `from`, plus `offset`, is put into `to`.
    pub fn follow(&self, code: &mut Assembler, to: Register, from: Register, offset: i16, failed: Label) {
        self.copy(code, from, offset, record::POINTER, 8, failed);
        code.load(Double, to, STACK, record::POINTER);
        code.jump_if(to, Equal, Number(0), failed);
    }

    /// The ids of the thread that runs now, and the station.
    pub fn describe(&self, code: &mut Assembler, at: i16, station: u8) {
        code.call(Function::CurrentPidTgid);
        code.store(Double, STACK, at + record::IDS, R0);
        code.store_number(Double, STACK, at + record::STATION, station.into());
    }

    /// Puts the record at `at` on the stack into the ring, whose reader is woken once enough is there.
    pub fn send(&self, code: &mut Assembler, at: i16, bytes: i32) {
        const AVAILABLE: i32 = 0;
        const DO_NOT_WAKE: i32 = 1;
        const WAKE: i32 = 2;
        let (send, sent) = (code.label(), code.label());
        code.map(R1, self.ring);
        code.set(R2, AVAILABLE);
        code.call(Function::RingbufQuery);
        code.set(R4, WAKE);
        code.jump_if(R0, Greater, Number((self.ring_bytes / WAKE_SHARE) as i32), send);
        code.set(R4, DO_NOT_WAKE);
        code.here(send);
        code.map(R1, self.ring);
        code.address(R2, STACK, at);
        code.set(R3, bytes);
        code.call(Function::RingbufOutput);
        code.jump_if(R0, Equal, Number(0), sent);
        code.first_value(R1, self.lost);
        code.set(R2, 1);
        code.add_shared(R1, 0, R2);
        code.here(sent);
    }

    /// What tells a connection, of the TCP socket whose address is in the register, and the sequence number that its member
    /// has; to `out` for other sockets and for connections that are not in the sample.
    pub fn socket(&self, code: &mut Assembler, at: Register, sequence: &str, out: Label) -> Outcome<()> {
        let (types, common) = (self.types, SOCKET + socket::COMMON);
        self.copy(code, at, types.offset("sock", "sk_protocol")?, record::POINTER, 2, out);
        code.load(Half, R1, STACK, record::POINTER);
        code.jump_if(R1, NotEqual, Number(TCP), out);
        self.copy(code, at, types.offset("sock", "__sk_common")?, common, socket::COMMON_BYTES, out);
        if self.share < 1.0 {
            let of = |member| types.offset("sock_common", member).map(|offset| common + offset);
            let (six, sampled) = (code.label(), code.label());
            code.load(Half, R1, STACK, of("skc_num")?);
            code.network_order(R1);
            code.store(Half, STACK, record::POINTER, R1);
            code.load(Half, R1, STACK, of("skc_dport")?);
            code.store(Half, STACK, record::POINTER + 2, R1);
            let ports = record::POINTER;
            code.load(Half, R1, STACK, of("skc_family")?);
            code.jump_if(R1, Equal, Number(libc::AF_INET6), six);
            self.sample(code, [of("skc_daddr")?, of("skc_rcv_saddr")?], ports, out);
            code.jump(sampled);
            code.here(six);
            // The last four bytes of each address.
            self.sample(code, [of("skc_v6_daddr")? + 12, of("skc_v6_rcv_saddr")? + 12], ports, out);
            code.here(sampled);
        }
        code.store_number(Double, STACK, SOCKET + socket::SEQUENCE, 0);
        self.copy(code, at, types.offset("tcp_sock", sequence)?, SOCKET + socket::SEQUENCE, 4, out);
        Ok(())
    }
}
