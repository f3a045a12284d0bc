//! slabctl: slab memory, visible and explained.

// Until the commands call them.
#[cfg_attr(not(test), allow(dead_code))]
mod cmd;
#[cfg_attr(not(test), allow(dead_code))]
mod output;

fn main() {}
