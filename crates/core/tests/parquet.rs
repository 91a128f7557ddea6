//! Parquet files as the `parquet` crate reads them: every value of every kind, nulls, runs and statistics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::Field;
use proptest::prelude::*;
use twinbed_core::table::parquet::{Group, Writer};
use twinbed_core::table::Column;

#[derive(Debug, Clone, PartialEq)]
struct Row {
    integer: i64,
    optional_integer: Option<i64>,
    real: f64,
    optional_real: Option<f64>,
    flag: bool,
    optional_flag: Option<bool>,
    port: u16,
    address: IpAddr,
    text: String,
    optional_text: Option<String>,
}

fn columns() -> Vec<Column<Row>> {
    vec![
        Column::integer("integer", |row: &Row| row.integer),
        Column::optional_integer("optional_integer", |row: &Row| row.optional_integer),
        Column::real("real", |row: &Row| row.real),
        Column::optional_real("optional_real", |row: &Row| row.optional_real),
        Column::flag("flag", |row: &Row| row.flag),
        Column::optional_flag("optional_flag", |row: &Row| row.optional_flag),
        Column::port("port", |row: &Row| row.port),
        Column::address("address", |row: &Row| row.address),
        Column::text("text", |row: &Row| row.text.as_str()),
        Column::optional_text("optional_text", |row: &Row| row.optional_text.as_deref()),
    ]
}

/// Rows by row groups of blocks; `parts` row groups' parts, as different threads write them.
fn file(groups: &[Vec<Vec<Row>>], parts: usize) -> SerializedFileReader<Bytes> {
    let columns = columns();
    let mut writer = Writer::new(Vec::new(), &columns).unwrap();
    let mut encoders: Vec<_> = columns.chunks(columns.len().div_ceil(parts)).map(Group::new).collect();
    for blocks in groups {
        for encoder in &mut encoders {
            blocks.iter().for_each(|block| encoder.push(block));
            writer.append(encoder).unwrap();
        }
    }
    SerializedFileReader::new(Bytes::from(writer.finish().unwrap())).unwrap()
}

fn optional<T>(value: Option<T>, field: impl Fn(T) -> Field) -> Field {
    value.map_or(Field::Null, field)
}

fn fields(row: &Row) -> Vec<Field> {
    vec![
        Field::Long(row.integer),
        optional(row.optional_integer, Field::Long),
        Field::Double(row.real),
        optional(row.optional_real, Field::Double),
        Field::Bool(row.flag),
        optional(row.optional_flag, Field::Bool),
        Field::UShort(row.port),
        Field::Str(row.address.to_string()),
        Field::Str(row.text.clone()),
        optional(row.optional_text.clone(), Field::Str),
    ]
}

/// Equal, where a real is by its bits.
fn same(a: &Field, b: &Field) -> bool {
    match (a, b) {
        (Field::Double(a), Field::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn assert_reads_back(groups: &[Vec<Vec<Row>>], parts: usize) {
    let reader = file(groups, parts);
    let rows: Vec<&Row> = groups.iter().flatten().flatten().collect();
    assert_eq!(reader.metadata().file_metadata().num_rows(), rows.len() as i64);
    let mut read = 0;
    for (row, record) in rows.iter().zip(reader.get_row_iter(None).unwrap()) {
        let record = record.unwrap();
        for (expected, (name, field)) in fields(row).iter().zip(record.get_column_iter()) {
            assert!(same(expected, field), "{name}: {expected:?} read as {field:?}");
        }
        read += 1;
    }
    assert_eq!(read, rows.len());
}

fn row() -> impl Strategy<Value = Row> {
    let integer = prop_oneof![4 => -3i64..9, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let real = prop_oneof![4 => (0u8..5).prop_map(f64::from), 1 => any::<f64>(), 1 => Just(f64::NAN), 1 => Just(-0.0)];
    let address = prop_oneof![
        any::<u8>().prop_map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
    ];
    let text = prop_oneof![Just(String::new()), "[a-cé]{1,3}"];
    (integer, real, any::<bool>(), any::<u16>(), address, text, any::<[bool; 4]>()).prop_map(
        |(integer, real, flag, port, address, text, there)| Row {
            integer,
            optional_integer: there[0].then_some(integer),
            real,
            optional_real: there[1].then_some(real),
            flag,
            optional_flag: there[2].then_some(flag),
            port,
            address,
            optional_text: there[3].then(|| text.clone()),
            text,
        },
    )
}

/// Blocks in which rows repeat, so that runs begin and end anywhere.
fn groups() -> impl Strategy<Value = Vec<Vec<Vec<Row>>>> {
    let repeated = prop::collection::vec((row(), prop_oneof![1usize..4, 20..300usize]), 1..8);
    let block = repeated
        .prop_map(|rows| rows.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count)).collect::<Vec<_>>());
    prop::collection::vec(prop::collection::vec(block, 1..4), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read(groups in groups(), parts in 1usize..4) {
        assert_reads_back(&groups, parts);
    }
}

fn plain(number: i64) -> Row {
    Row {
        integer: number,
        optional_integer: None,
        real: number as f64 / 3.0,
        optional_real: Some(7.5),
        flag: false,
        optional_flag: None,
        port: 443,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        text: "one".into(),
        optional_text: None,
    }
}

#[test]
fn more_reals_than_a_dictionary_takes_go_without() {
    let rows: Vec<Row> = (0..5000).map(plain).collect();
    assert_reads_back(&[rows.chunks(512).map(<[Row]>::to_vec).collect()], 1);
}

#[test]
fn a_column_of_one_value_takes_some_bytes_however_many_rows() {
    let blocks = vec![vec![plain(3); 256]; 256];
    let reader = file(&[blocks], 1);
    for column in reader.metadata().row_group(0).columns() {
        let flags = column.column_path().string() == "flag";
        let most = if flags { 65536 / 8 + 100 } else { 100 };
        assert!(column.compressed_size() < most, "{}: {}", column.column_path(), column.compressed_size());
    }
}

#[test]
fn statistics_say_least_and_greatest_and_nulls() {
    let mut rows: Vec<Row> = (-5..300).map(plain).collect();
    rows[7].optional_integer = Some(40);
    rows[8].optional_integer = Some(-2);
    let reader = file(&[vec![rows]], 1);
    let of = |column: usize| reader.metadata().row_group(0).column(column).statistics().cloned().unwrap();
    match of(0) {
        Statistics::Int64(statistics) => {
            assert_eq!((statistics.min_opt(), statistics.max_opt()), (Some(&-5), Some(&299)))
        }
        other => panic!("{other:?}"),
    }
    match of(1) {
        Statistics::Int64(statistics) => {
            assert_eq!((statistics.min_opt(), statistics.max_opt()), (Some(&-2), Some(&40)));
            assert_eq!(statistics.null_count_opt(), Some(303));
        }
        other => panic!("{other:?}"),
    }
    match of(6) {
        Statistics::Int32(statistics) => {
            assert_eq!((statistics.min_opt(), statistics.max_opt()), (Some(&443), Some(&443)))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_no_order_has_no_least() {
    let mut rows = vec![plain(1); 10];
    rows[3].real = f64::NAN;
    let reader = file(&[vec![rows]], 1);
    let statistics = reader.metadata().row_group(0).column(2).statistics().cloned().unwrap();
    assert!(statistics.min_bytes_opt().is_none() && statistics.max_bytes_opt().is_none());
}

#[test]
fn a_table_without_rows_is_a_file_with_its_columns() {
    let reader = file(&[], 1);
    assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), columns().len());
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

/// A column of a part is written as if every row had been asked for its value, whether none, some or all rows of a block
/// have the part.
#[test]
fn parts_change_no_byte() {
    let columns = || {
        vec![
            Column::integer("count", |row: &u64| *row),
            Column::optional_integer("value", |row: &u64| (*row > 0).then_some(*row)),
            Column::optional_real("real", |row: &u64| (*row > 0).then_some(*row as f64)),
            Column::flag("flag", |row: &u64| *row > 0),
        ]
    };
    let written = |columns: Vec<Column<u64>>| {
        let mut writer = Writer::new(Vec::new(), &columns).unwrap();
        let mut group = Group::new(&columns);
        for block in [[0, 0, 0], [0, 5, 0], [0, 0, 0], [0, 0, 0], [7, 8, 9]] {
            group.push(&block);
        }
        writer.append(&mut group).unwrap();
        writer.finish().unwrap()
    };
    let of_part = |column: Column<u64>| column.of_part(1, |row| *row > 0);
    assert!(written(columns().into_iter().map(of_part).collect()) == written(columns()));
}
