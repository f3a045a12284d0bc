//! Slab memory from many sources in one model, and the analysis of it.
//!
//! Data flows one way: a [`source`] reads raw text, a parser in [`parse`] turns
//! it into typed rows and says what it skipped, the rows fill the [`model`],
//! [`analysis`] derives figures from one or two snapshots, and [`columns`]
//! names every figure once for all front ends. Nothing here prints, and only
//! [`control`] changes anything on a machine.

pub mod analysis;
pub mod columns;
pub mod control;
pub mod error;
pub mod filter;
pub mod model;
pub mod parse;
pub mod similar;
pub mod source;
pub mod units;

pub use error::Error;
