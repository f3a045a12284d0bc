//! Tables of figures, whoever shows them.

/// Where the figures of a [`Sheet`] are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From the thread: another machine, and a kernel.
    Published,
    /// What the engine counted on this machine.
    Counted,
    /// From the model: counted on logical processors, and costs that are assumed.
    Model,
    /// Times of this machine.
    Measured,
}

impl Kind {
    /// The name in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Counted => "counted",
            Self::Model => "model",
            Self::Measured => "measured",
        }
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A figure, and how many decimals of it are shown.
    Number(f64, usize),
    /// Not known, or not told.
    Unknown,
}

impl Value {
    /// What people see; `None` where nothing is known.
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(value, decimals) => Some(format!("{value:.decimals$}")),
            Self::Unknown => None,
        }
    }

    /// A number if the text is one, with its decimals; else the text.
    pub fn of(text: &str) -> Self {
        let plain = text.replace(',', "");
        match plain.parse() {
            Ok(value) => {
                let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len());
                Self::Number(value, decimals)
            }
            Err(_) if text == "-" => Self::Unknown,
            Err(_) => Self::Text(text.to_owned()),
        }
    }
}

/// A table of figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Where the figures are from.
    pub kind: Kind,
    /// What is in it, with the unit.
    pub title: String,
    /// Headings; the first column says what a row is of.
    pub columns: Vec<String>,
    /// Rows, as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl Sheet {
    /// A table without rows.
    pub fn new<C: Into<String>>(
        kind: Kind,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
    ) -> Self {
        Self {
            kind,
            title: title.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Another row: what it is of, and figures with so many decimals.
    pub fn row(&mut self, of: &str, decimals: usize, figures: impl IntoIterator<Item = f64>) {
        let figures = figures.into_iter().map(|f| Value::Number(f, decimals));
        let row = std::iter::once(Value::of(of)).chain(figures);
        self.rows.push(row.collect());
    }

    /// The figures of a row; empty if there is no such row.
    pub fn figures(&self, of: &str) -> Vec<f64> {
        let row = { self.rows.iter() }.find(|row| row.first() == Some(&Value::of(of)));
        let cells = row.into_iter().flatten().skip(1);
        cells
            .filter_map(|cell| match cell {
                Value::Number(value, _) => Some(*value),
                _ => None,
            })
            .collect()
    }
}
