//! slabctl: slab memory, visible and explained.
fn main() {}
