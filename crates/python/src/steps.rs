//! Tables of what exchanges consist of: a row for each exchange with its steps, and one for each packet of a sample of them.

use twinbed_core::readers::http::{Connection, Exchange, Mark, Requests, Steps};

use crate::arrow::Columns;

type Row<'a> = (&'a Connection, &'a Exchange, &'a Steps);

fn rows(done: &Requests) -> Vec<Row<'_>> {
    let connection = |row: &Exchange| done.connections.get(row.connection as usize);
    done.exchanges.iter().filter_map(|row| Some((connection(row)?, row, row.steps.as_deref()?))).collect()
}

/// What names an exchange in the captures of both ends of its path.
fn names(columns: &mut Columns, rows: &[Row<'_>]) {
    let clients: Vec<String> = rows.iter().map(|(connection, _, _)| connection.client_address.to_string()).collect();
    columns.text("client_address", clients.iter().map(String::as_str));
    columns.port("client_port", rows.iter().map(|(connection, _, _)| connection.client_port));
    let servers: Vec<String> = rows.iter().map(|(connection, _, _)| connection.server_address.to_string()).collect();
    columns.text("server_address", servers.iter().map(String::as_str));
    columns.port("server_port", rows.iter().map(|(connection, _, _)| connection.server_port));
    columns.integer("request_sequence", rows.iter().map(|(_, _, steps)| i64::from(steps.request_sequence)));
    columns.integer("index", rows.iter().map(|(_, row, _)| i64::from(row.index)));
}

pub fn step_columns(done: &Requests) -> Columns {
    let rows = rows(done);
    let mut columns = Columns::default();
    names(&mut columns, &rows);
    columns.optional_bool("complete", rows.iter().map(|(_, row, _)| Some(row.complete)));
    columns.text("delimited", rows.iter().map(|(_, row, _)| row.delimited.name()));
    type Time = (&'static str, fn(&Exchange, &Steps) -> Option<i64>);
    const TIMES: [Time; 14] = [
        ("syn_ns", |_, steps| steps.syn_ns),
        ("syn_ack_ns", |_, steps| steps.syn_ack_ns),
        ("established_ns", |_, steps| steps.established_ns),
        ("request_ns", |row, _| row.start_ns),
        ("request_end_ns", |_, steps| steps.request_end_ns),
        ("request_acked_ns", |_, steps| steps.request_acked_ns),
        ("response_ns", |row, _| row.response_start_ns),
        ("response_end_ns", |row, _| row.response_end_ns.filter(|_| row.complete)),
        ("response_acked_ns", |row, steps| steps.response_acked_ns.filter(|_| row.complete)),
        ("client_fin_ns", |_, steps| steps.client_fin_ns),
        ("server_fin_ns", |_, steps| steps.server_fin_ns),
        ("reset_ns", |_, steps| steps.reset_ns),
        ("next_ns", |_, steps| steps.next_ns),
        ("silence_start_ns", |_, steps| steps.silence_start_ns),
    ];
    for (name, time) in TIMES {
        columns.optional_integer(name, rows.iter().map(|(_, row, steps)| time(row, steps)));
    }
    type Sequence = (&'static str, fn(&Exchange, &Steps) -> Option<u32>);
    const SEQUENCES: [Sequence; 3] = [
        ("request_end_sequence", |_, steps| steps.request_end_sequence),
        ("response_sequence", |_, steps| steps.response_sequence),
        ("response_end_sequence", |row, steps| steps.response_end_sequence.filter(|_| row.complete)),
    ];
    for (name, sequence) in SEQUENCES {
        columns.optional_integer(name, rows.iter().map(|(_, row, steps)| sequence(row, steps).map(i64::from)));
    }
    columns.integer("silence_ns", rows.iter().map(|(_, _, steps)| steps.silence_ns));
    let letters: Vec<Option<String>> =
        rows.iter().map(|(_, _, steps)| steps.silence_ended_by.map(String::from)).collect();
    columns.optional_text("silence_ended_by", letters.iter().map(Option::as_deref));
    let patterns: Vec<String> = rows.iter().map(|(_, _, steps)| steps.pattern.text()).collect();
    columns.text("pattern", patterns.iter().map(String::as_str));
    type Count = (&'static str, fn(&Exchange, &Steps) -> u64);
    const COUNTS: [Count; 8] = [
        ("client_packets", |row, _| row.client.packets),
        ("server_packets", |row, _| row.server.packets),
        ("client_wire_packets", |row, _| row.client.wire_packets),
        ("server_wire_packets", |row, _| row.server.wire_packets),
        ("client_payload_bytes", |row, _| row.client.payload_bytes),
        ("server_payload_bytes", |row, _| row.server.payload_bytes),
        ("client_repeats", |_, steps| u64::from(steps.client_repeats)),
        ("server_repeats", |_, steps| u64::from(steps.server_repeats)),
    ];
    for (name, count) in COUNTS {
        columns.integer(name, rows.iter().map(|(_, row, steps)| count(row, steps) as i64));
    }
    columns
}

pub fn packet_columns(done: &Requests) -> Columns {
    let rows = rows(done);
    let packets: Vec<(Row<'_>, i64, &Mark)> = rows
        .iter()
        .flat_map(|row| row.2.packets.iter().flatten().zip(0..).map(|(mark, number)| (*row, number, mark)))
        .collect();
    let of_each: Vec<Row<'_>> = packets.iter().map(|(row, _, _)| *row).collect();
    let mut columns = Columns::default();
    names(&mut columns, &of_each);
    columns.integer("number", packets.iter().map(|(_, number, _)| *number));
    columns.optional_integer("time_ns", packets.iter().map(|(_, _, mark)| mark.time_ns));
    columns.text("from", packets.iter().map(|(_, _, mark)| if mark.from_client { "client" } else { "server" }));
    let kinds: Vec<String> = packets.iter().map(|(_, _, mark)| mark.letter().to_string()).collect();
    columns.text("kind", kinds.iter().map(String::as_str));
    columns.integer("position", packets.iter().map(|(_, _, mark)| mark.position));
    columns.integer("payload_bytes", packets.iter().map(|(_, _, mark)| i64::from(mark.payload_bytes)));
    columns.integer("wire_packets", packets.iter().map(|(_, _, mark)| i64::from(mark.wire_packets)));
    columns.optional_integer("acknowledges", packets.iter().map(|(_, _, mark)| mark.acknowledges));
    columns
}
