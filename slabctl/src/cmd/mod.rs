//! The commands: plain functions that take what was asked for and a writer.

pub(crate) mod schema;
