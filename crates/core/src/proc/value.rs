//! The value of a key, and how the values of one key are to be compared.

/// How a key's values are to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows: its difference counts.
    Counter,
    /// A state: its values count.
    Gauge,
    /// A text.
    Setting,
    /// Nothing is known of it: the host does not have its source.
    Absent,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Setting => "setting",
            Kind::Absent => "absent",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Integer(i128),
    Real(f64),
    Text(String),
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Real(value) => Some(*value),
            Value::Text(_) => None,
        }
    }
}
