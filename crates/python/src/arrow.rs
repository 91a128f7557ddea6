//! Columns to `pyarrow.Table` through the Arrow PyCapsule interface: no copy, and no Arrow library of pyarrow's linked.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt16Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};
use pyo3::IntoPyObjectExt;
use twinbed_core::table::{Block, Column, Kind};

type End = (std::net::IpAddr, u16);

/// A column whose few values repeat.
pub fn repeated<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

/// Named columns of equal length, in order, and facts about the table as text.
#[derive(Default)]
pub struct Columns {
    columns: Vec<(String, ArrayRef, bool)>,
    metadata: HashMap<String, String>,
}

impl Columns {
    pub fn add(&mut self, name: impl Into<String>, column: ArrayRef, nullable: bool) {
        self.columns.push((name.into(), column, nullable));
    }

    pub fn text<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.add(name, Arc::new(StringArray::from_iter_values(values)), false);
    }

    pub fn optional_text<'a>(&mut self, name: &str, values: impl Iterator<Item = Option<&'a str>>) {
        self.add(name, Arc::new(StringArray::from_iter(values)), true);
    }

    pub fn integer(&mut self, name: impl Into<String>, values: impl Iterator<Item = i64>) {
        self.add(name, Arc::new(Int64Array::from_iter_values(values)), false);
    }

    pub fn optional_integer(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<i64>>) {
        self.add(name, Arc::new(Int64Array::from_iter(values)), true);
    }

    pub fn real(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        self.add(name, Arc::new(Float64Array::from_iter_values(values)), false);
    }

    pub fn optional_real(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.add(name, Arc::new(Float64Array::from_iter(values)), true);
    }

    pub fn optional_bool(&mut self, name: &str, values: impl Iterator<Item = Option<bool>>) {
        self.add(name, Arc::new(BooleanArray::from_iter(values)), true);
    }

    pub fn port(&mut self, name: &str, values: impl Iterator<Item = u16>) {
        self.add(name, Arc::new(UInt16Array::from_iter_values(values)), false);
    }

    /// Address and port of two ends: four columns, `source_` and `destination_`.
    pub fn ends(&mut self, ends: impl Iterator<Item = (End, End)>) {
        let (sources, destinations): (Vec<End>, Vec<End>) = ends.unzip();
        for (name, ends) in [("source", sources), ("destination", destinations)] {
            let addresses: Vec<String> = ends.iter().map(|(address, _)| address.to_string()).collect();
            self.text(&format!("{name}_address"), addresses.iter().map(String::as_str));
            self.port(&format!("{name}_port"), ends.iter().map(|(_, port)| *port));
        }
    }

    /// A fact about the table: it is in the schema's metadata.
    pub fn fact(&mut self, name: &str, value: impl ToString) {
        self.metadata.insert(name.to_owned(), value.to_string());
    }

    pub fn batch(self) -> Result<RecordBatch, ArrowError> {
        let fields: Vec<Field> = self
            .columns
            .iter()
            .map(|(name, column, nullable)| Field::new(name, column.data_type().clone(), *nullable))
            .collect();
        let schema = Schema::new(fields).with_metadata(self.metadata);
        RecordBatch::try_new(Arc::new(schema), self.columns.into_iter().map(|(_, column, _)| column).collect())
    }
}

/// The Arrow schema of columns.
pub fn schema<R>(columns: &[Column<R>]) -> SchemaRef {
    let field = |column: &Column<R>| {
        let kind = match column.kind {
            Kind::Integer => DataType::Int64,
            Kind::Real => DataType::Float64,
            Kind::Flag => DataType::Boolean,
            Kind::Port => DataType::UInt16,
            Kind::Text | Kind::Address => DataType::Utf8,
        };
        Field::new(column.name.as_ref(), kind, column.nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Rows as one Arrow batch.
pub fn batch<R>(columns: &[Column<R>], schema: &SchemaRef, rows: &[R]) -> Result<RecordBatch, ArrowError> {
    let mut block = Block::default();
    RecordBatch::try_new(schema.clone(), columns.iter().map(|column| array(column, rows, &mut block)).collect())
}

fn array<R>(column: &Column<R>, rows: &[R], block: &mut Block) -> ArrayRef {
    column.gather(rows, block);
    let nulls = column.nullable.then(|| NullBuffer::from(block.valid.as_slice()));
    match column.kind {
        Kind::Integer => Arc::new(Int64Array::new(block.integers.clone().into(), nulls)),
        Kind::Real => Arc::new(Float64Array::new(block.reals.clone().into(), nulls)),
        Kind::Flag => Arc::new(BooleanArray::new(block.flags.as_slice().into(), nulls)),
        Kind::Port => Arc::new(UInt16Array::from_iter_values(block.integers.iter().map(|port| *port as u16))),
        Kind::Text if column.nullable => Arc::new(StringArray::from_iter(
            block.texts.iter().zip(&block.valid).map(|(text, valid)| valid.then_some(text)),
        )),
        Kind::Text => Arc::new(StringArray::from_iter_values(block.texts.iter())),
        Kind::Address => {
            Arc::new(StringArray::from_iter_values(block.addresses.iter().map(|address| address.to_string())))
        }
    }
}

/// What `pyarrow.table` takes: an object that gives its stream once.
#[pyclass]
struct Stream {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer leave a requested schema aside.
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let batches = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Hands a batch to pyarrow.
pub fn table(py: Python<'_>, batch: Result<RecordBatch, ArrowError>) -> PyResult<Bound<'_, PyAny>> {
    table_of(py, batch.map(|batch| vec![batch]))
}

/// Hands batches of one schema to pyarrow, as one table; there must be one.
pub fn table_of(py: Python<'_>, batches: Result<Vec<RecordBatch>, ArrowError>) -> PyResult<Bound<'_, PyAny>> {
    let batches = batches.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let schema = batches.first().map(RecordBatch::schema).ok_or_else(|| PyRuntimeError::new_err("no batch"))?;
    // Not `pyarrow.table`, which imports pandas first, where there is one, to see that this is no data frame of it.
    let reader = py.import("pyarrow")?.getattr("RecordBatchReader")?;
    reader.call_method1("from_stream", (Stream { batches, schema },))?.call_method0("read_all")
}

/// As [`table_of`], or as a list of a dict a row, for which pyarrow is not imported: that takes longer than a small capture.
pub fn table_or_rows(
    py: Python<'_>,
    batches: Result<Vec<RecordBatch>, ArrowError>,
    as_rows: bool,
) -> PyResult<Bound<'_, PyAny>> {
    if !as_rows {
        return table_of(py, batches);
    }
    let rows = PyList::empty(py);
    for batch in batches.map_err(|error| PyRuntimeError::new_err(error.to_string()))? {
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| PyString::new(py, field.name())).collect();
        for at in 0..batch.num_rows() {
            let row = PyDict::new(py);
            for (name, column) in names.iter().zip(batch.columns()) {
                row.set_item(name, value(py, column, at)?)?;
            }
            rows.append(row)?;
        }
    }
    Ok(rows.into_any())
}

/// What a column holds in a row, as `pyarrow.Table.to_pylist` gives it.
fn value<'py>(py: Python<'py>, column: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(at).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(at).into_bound_py_any(py),
        DataType::Boolean => column.as_boolean().value(at).into_bound_py_any(py),
        DataType::Utf8 => column.as_string::<i32>().value(at).into_bound_py_any(py),
        other => Err(PyRuntimeError::new_err(format!("a column of {other} is in no table of rows"))),
    }
}
