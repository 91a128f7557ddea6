//! `capture_tables`' table of stalls.

use twinbed_core::readers::stalls::{EndedBy, Reason, Stall};

use crate::arrow::Columns;
use crate::capture::seconds;

pub fn stall_columns(rows: &[Stall]) -> Columns {
    let mut columns = Columns::default();
    let originators: Vec<String> = rows.iter().map(|row| row.originator_address.to_string()).collect();
    columns.text("originator_address", originators.iter().map(String::as_str));
    columns.port("originator_port", rows.iter().map(|row| row.originator_port));
    let responders: Vec<String> = rows.iter().map(|row| row.responder_address.to_string()).collect();
    columns.text("responder_address", responders.iter().map(String::as_str));
    columns.port("responder_port", rows.iter().map(|row| row.responder_port));
    columns.integer("first_packet", rows.iter().map(|row| row.first_packet as i64));
    columns.integer("start_ns", rows.iter().map(|row| row.start_ns));
    columns.optional_real("duration_s", rows.iter().map(|row| seconds(Some(row.duration_ns))));
    columns.text("direction", rows.iter().map(|row| if row.originator_waits { "originator" } else { "responder" }));
    columns.integer("unacknowledged_bytes", rows.iter().map(|row| row.unacknowledged_bytes as i64));
    columns.integer("retransmissions", rows.iter().map(|row| row.retransmissions as i64));
    columns.integer("probes", rows.iter().map(|row| row.probes as i64));
    columns.integer("returned_packets", rows.iter().map(|row| row.returned_packets as i64));
    columns.optional_real("rto_s", rows.iter().map(|row| seconds(Some(row.timeout_ns))));
    columns.text("reason", rows.iter().map(|row| reason(row.reason)));
    columns.text("ended_by", rows.iter().map(|row| ended_by(row.ended_by)));
    columns
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unanswered => "unanswered",
        Reason::ZeroWindow => "zero_window",
    }
}

fn ended_by(ended_by: EndedBy) -> &'static str {
    match ended_by {
        EndedBy::Acknowledgment => "acknowledgment",
        EndedBy::Data => "data",
        EndedBy::Window => "window",
        EndedBy::Reset => "reset",
        EndedBy::CaptureEnd => "capture_end",
    }
}
