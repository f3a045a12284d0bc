//! The same source as lines, on the thread of the caller; see [`crate::linear`].

use std::io::{self, Write};
use std::time::{Duration, Instant};

use collectors::source::Source;

use super::Options;
use super::sampler::{cpu_time, following};
use crate::linear;
use crate::model::{Model, Sample};
use crate::msg::Msg;
use crate::update::update;

/// Why the lines ended early.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The source could not be read even once.
    #[error("{0}")]
    Source(#[from] collectors::Error),
    /// The lines could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Writes lines about a source: `count` samples of a live one, or until the
/// writing fails; one of a saved file.
pub fn lines(
    options: Options,
    source: &mut dyn Source,
    count: Option<u64>,
    out: &mut dyn Write,
) -> Result<(), LinesError> {
    let start = Instant::now();
    let live = source.is_live();
    let mut model = Model::new(options.settings, source.describe(), live);
    model.list = options.list;
    let demand = model.demand();
    let mut next = start + model.settings.interval;
    let count = if live { count } else { Some(1) };
    for round in 1.. {
        let began = Instant::now();
        let text = match source.sample(&demand) {
            Ok(snapshot) => {
                let sample = Sample {
                    snapshot,
                    at: start.elapsed(),
                    took: began.elapsed(),
                    full: false,
                    replaced: 0,
                    cpu_time: cpu_time(),
                    sites: None,
                };
                update(&mut model, start.elapsed(), Msg::Sample(Box::new(sample)));
                linear::lines(&model)
            }
            Err(error) if round == 1 => return Err(error.into()),
            Err(error) => format!("no sample: {error}\n"),
        };
        out.write_all(text.as_bytes())?;
        out.flush()?;
        if count.is_some_and(|count| round >= count) {
            return Ok(());
        }
        let wait = next.saturating_duration_since(Instant::now());
        std::thread::sleep(wait.max(Duration::from_millis(1)));
        next = following(next, model.settings.interval);
    }
    Ok(())
}
