//! Helpers of the tests over whole sources.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test program uses a part of this; a test may stop at once"
)]

pub mod counting;
pub mod raw;
pub mod tree;
