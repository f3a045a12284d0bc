//! The page order of a cache's slabs.
//!
//! Source of truth: `calculate_order` and `calc_slab_order` of mm/slub.c in
//! Linux 6.12. The kernel's processor count is given by the caller.

use crate::sys::PAGE;
pub use crate::walk::MAX_OBJECTS;

/// Largest order of a slab.
pub const MAX_ORDER: u32 = 10;

/// What the order depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderRule {
    /// Objects a slab should hold; 0 is the default of `4 * (fls(cpus) + 1)`.
    pub min_objects: u32,
    /// Largest order tried for the sake of `min_objects`, by default 3.
    pub max_order: u32,
    /// Processors counted.
    pub cpus: u32,
}

/// Objects of `size` bytes in a slab of `order`.
pub const fn objects(size: usize, order: u32) -> usize {
    (PAGE << order) / size
}

/// The smallest order that holds `bytes`.
pub const fn order_of(bytes: usize) -> u32 {
    bytes.div_ceil(PAGE).next_power_of_two().trailing_zeros()
}

/// The order for slots of `size` bytes; `None` if no order holds one.
///
/// The smallest order that wastes at most 1/16 of the slab, else 1/8, 1/4, 1/2;
/// else the smallest that holds one object.
pub fn calculate_order(size: usize, rule: OrderRule) -> Option<u32> {
    if size == 0 || size > PAGE << MAX_ORDER {
        return None;
    }
    let max_order = rule.max_order.min(MAX_ORDER);
    let wanted = match rule.min_objects {
        0 => 4 * (u32::BITS - rule.cpus.leading_zeros() + 1),
        n => n,
    };
    let wanted = (wanted as usize).min(objects(size, max_order)).max(1);
    let from = order_of(wanted * size);
    if objects(size, from) > MAX_OBJECTS {
        return Some(order_of(size * MAX_OBJECTS).saturating_sub(1));
    }
    let fits = |fraction: usize| {
        (from..=max_order).find(|order| (PAGE << order) % size <= (PAGE << order) / fraction)
    };
    let order = [16, 8, 4, 2].into_iter().find_map(fits);
    Some(order.unwrap_or_else(|| order_of(size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(size: usize, cpus: u32) -> (u32, usize) {
        let rule = OrderRule {
            min_objects: 0,
            max_order: 3,
            cpus,
        };
        let order = calculate_order(size, rule).unwrap();
        (order, objects(size, order))
    }

    #[test]
    fn caches_get_the_orders_that_kernels_show() {
        assert_eq!(order(192, 2), (0, 21));
        assert_eq!(order(1024, 2), (2, 16));
        assert_eq!(order(1024, 16), (3, 32));
        assert_eq!(order(4096, 2), (3, 8));
        assert_eq!(order(8192, 64), (3, 4));
        assert_eq!(order(1096, 64), (3, 29));
        assert_eq!(order(40_000, 4), (4, 1));
    }

    #[test]
    fn more_objects_ask_for_a_higher_order() {
        let rule = |min_objects| OrderRule {
            min_objects,
            max_order: 3,
            cpus: 2,
        };
        let orders: Vec<_> = [8, 16, 32, 64]
            .map(|n| calculate_order(512, rule(n)).unwrap())
            .into();
        assert_eq!(orders, [0, 1, 2, 3]);
    }

    #[test]
    fn sizes_without_an_order_are_refused() {
        let rule = OrderRule {
            min_objects: u32::MAX,
            max_order: u32::MAX,
            cpus: u32::MAX,
        };
        assert_eq!(calculate_order(0, rule), None);
        assert_eq!(calculate_order((4 << 20) + 1, rule), None);
        assert!(calculate_order(8, rule).is_some_and(|o| objects(8, o) <= MAX_OBJECTS));
    }
}
