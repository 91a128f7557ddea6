//! The tables of what a watcher learns from a capture: features of hosts, and blocks of packets.

use twinbed_core::readers::observer::{Feature, Host, Observed, Role, Window};

use crate::arrow::Columns;

pub fn host_columns(done: &Observed) -> Columns {
    let rows: Vec<(&Host, &Feature)> =
        done.hosts.iter().flat_map(|host| host.features.iter().map(move |feature| (host, feature))).collect();
    let addresses: Vec<String> = rows.iter().map(|(host, _)| host.address.to_string()).collect();
    let role = |host: &Host| match host.role {
        Role::Originator => "originator",
        Role::Responder => "responder",
    };
    let mut columns = Columns::default();
    columns.text("role", rows.iter().map(|(host, _)| role(host)));
    columns.text("address", addresses.iter().map(String::as_str));
    columns.integer("syns", rows.iter().map(|(host, _)| host.syns as i64));
    columns.text("feature", rows.iter().map(|(_, feature)| feature.name));
    columns.optional_text("text", rows.iter().map(|(_, feature)| feature.text.as_deref()));
    columns.optional_real("value", rows.iter().map(|(_, feature)| feature.value));
    columns.integer("seen", rows.iter().map(|(_, feature)| feature.seen as i64));
    columns
}

pub fn window_columns(windows: &[Window]) -> Columns {
    let direction = |row: &Window| if row.client_to_server { "client_to_server" } else { "server_to_client" };
    let mut columns = Columns::default();
    columns.text("direction", windows.iter().map(direction));
    columns.integer("packets", windows.iter().map(|row| row.packets as i64));
    columns.integer("block", windows.iter().map(|row| i64::from(row.block)));
    for (name, value) in ALWAYS {
        columns.real(name, windows.iter().map(value));
    }
    for (name, value) in SOMETIMES {
        columns.optional_real(name, windows.iter().map(value));
    }
    columns
}

type Always = (&'static str, fn(&Window) -> f64);
const ALWAYS: [Always; 13] = [
    ("seconds", |row| row.seconds),
    ("gap_log_mean", |row| row.gap_log_mean),
    ("gap_log_sd", |row| row.gap_log_sd),
    ("gap_p10_s", |row| row.gap_p10_s),
    ("gap_p50_s", |row| row.gap_p50_s),
    ("gap_p90_s", |row| row.gap_p90_s),
    ("burst_share", |row| row.burst_share),
    ("bytes_mean", |row| row.bytes_mean),
    ("bytes_sd", |row| row.bytes_sd),
    ("full_share", |row| row.full_share),
    ("push_share", |row| row.push_share),
    ("ack_share", |row| row.ack_share),
    ("retransmitted_share", |row| row.retransmitted_share),
];

type Sometimes = (&'static str, fn(&Window) -> Option<f64>);
const SOMETIMES: [Sometimes; 5] = [
    ("turn_p50_s", |row| row.turn_p50_s),
    ("turn_p90_s", |row| row.turn_p90_s),
    ("window_mean", |row| row.window_mean),
    ("ip_id_zero_share", |row| row.ip_id_zero_share),
    ("timestamp_rate_hz", |row| row.timestamp_rate_hz),
];
