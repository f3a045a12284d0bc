//! The page order of a cache's slabs, from the size of a slot.
//!
//! Source of truth: `calculate_order` and `calc_slab_order` of mm/slub.c in
//! Linux 6.1 and 6.12. The choice depends on the slot size, the number of
//! processors, the page size and three options (`slab_min_objects`,
//! `slab_min_order`, `slab_max_order`). The engine follows the newer form with
//! its own page size; the rest serves whoever predicts what a kernel chose.

use crate::sys::PAGE;
pub use crate::walk::MAX_OBJECTS;

/// Largest page order of the page allocator in its usual configuration.
pub const MAX_ORDER: u32 = 10;

/// Objects of `size` bytes in a slab of the engine's pages.
pub const fn objects(size: usize, order: u32) -> usize {
    (PAGE << order) / size
}

/// The smallest order of the engine's pages that holds `bytes`.
pub const fn order_of(bytes: usize) -> u32 {
    bytes.div_ceil(PAGE).next_power_of_two().trailing_zeros()
}

/// Which form of the rule a kernel has.
///
/// With pages of 4096 bytes and default options both choose alike but for
/// slots of 10,928 to 12,280 bytes, where the older form takes one object in
/// order 2 and the newer one two objects in order 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderRule {
    /// Up to Linux 6.6: up to a quarter of waste, then fewer objects.
    FewerObjects,
    /// Linux 6.7 and later: up to half of waste, with the objects fixed.
    #[default]
    MoreWaste,
}

/// What the order is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderParams {
    /// Bytes of one object's slot.
    pub slab_size: u64,
    /// Processors that the kernel counted.
    pub cpus: u32,
    /// `slab_min_objects`; `None`, as 0, is the default of `4 * (fls(cpus) + 1)`.
    pub min_objects: Option<u32>,
    /// `slab_min_order`, by default 0.
    pub min_order: u32,
    /// `slab_max_order`, by default 3.
    pub max_order: u32,
    /// Bytes in a page.
    pub page_size: u64,
    /// Which form of the rule.
    pub rule: OrderRule,
}

impl OrderParams {
    /// The parameters of a kernel without slab boot options.
    pub const fn new(slab_size: u64, cpus: u32, page_size: u64) -> Self {
        Self {
            slab_size,
            cpus,
            min_objects: None,
            min_order: 0,
            max_order: 3,
            page_size,
            rule: OrderRule::MoreWaste,
        }
    }

    /// The parameters with another form of the rule.
    #[must_use]
    pub const fn with_rule(mut self, rule: OrderRule) -> Self {
        self.rule = rule;
        self
    }
}

/// The order SLUB chooses, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderChoice {
    /// Page order of a slab.
    pub order: u32,
    /// Objects in such a slab.
    pub objs_per_slab: u64,
    /// Bytes at its end that hold no object.
    pub waste_bytes: u64,
    /// Order that is tried when a slab of `order` cannot be had.
    pub fallback_order: u32,
    /// Objects in a slab of that order.
    pub fallback_objs_per_slab: u64,
}

/// Predicts the order of a cache.
///
/// `None` when no order can hold a slot of that size, or when a parameter is
/// not one of a kernel (a size of 0, a page size that is no power of two).
pub fn calculate_order(params: &OrderParams) -> Option<OrderChoice> {
    let rule = Rule::of(params)?;
    let order = match params.rule {
        OrderRule::FewerObjects => rule.fewer_objects(),
        OrderRule::MoreWaste => rule.more_waste(),
    };
    if order > MAX_ORDER {
        return None;
    }
    let fallback_order = rule.get_order(rule.size);
    let objs_per_slab = rule.objects(order);
    Some(OrderChoice {
        order,
        objs_per_slab,
        waste_bytes: (rule.page << order) - objs_per_slab * rule.size,
        fallback_order,
        fallback_objs_per_slab: rule.objects(fallback_order),
    })
}

/// Checked parameters: every product below fits in 64 bits.
struct Rule {
    size: u64,
    page: u64,
    min_objects: u64,
    min_order: u32,
    max_order: u32,
}

impl Rule {
    fn of(params: &OrderParams) -> Option<Self> {
        let page = params.page_size;
        let sane_page = page.is_power_of_two() && page <= 1 << 24;
        if !sane_page || params.slab_size == 0 || params.slab_size > page << MAX_ORDER {
            return None;
        }
        let min_order = params.min_order.min(MAX_ORDER);
        let mut rule = Self {
            size: params.slab_size,
            page,
            min_objects: 0,
            min_order,
            // The kernel raises the one option to the other.
            max_order: params.max_order.clamp(min_order, MAX_ORDER),
        };
        let wanted = match params.min_objects {
            None | Some(0) => u64::from(4 * (u32::BITS - params.cpus.leading_zeros() + 1)),
            Some(n) => u64::from(n),
        };
        rule.min_objects = wanted.min(rule.objects(rule.max_order));
        Some(rule)
    }

    fn objects(&self, order: u32) -> u64 {
        (self.page << order) / self.size
    }

    /// The smallest order that holds `bytes`.
    fn get_order(&self, bytes: u64) -> u32 {
        let pages = bytes.div_ceil(self.page).max(1);
        pages.next_power_of_two().trailing_zeros()
    }

    /// The order at which the object counter is full, where `order` is above it.
    fn counter_limit(&self, order: u32) -> Option<u32> {
        (self.objects(order) > MAX_OBJECTS as u64).then(|| {
            self.get_order(self.size * MAX_OBJECTS as u64)
                .saturating_sub(1)
        })
    }

    /// The first order from `from` that wastes at most one part in `fraction`.
    fn first_fit(&self, from: u32, fraction: u64) -> Option<u32> {
        (from..=self.max_order).find(|order| {
            let slab = self.page << order;
            slab % self.size <= slab / fraction
        })
    }

    fn fewer_objects(&self) -> u32 {
        if let Some(order) = self.counter_limit(self.min_order) {
            return order;
        }
        for objects in (2..=self.min_objects).rev() {
            let from = self.min_order.max(self.get_order(objects * self.size));
            let fit = [16, 8, 4]
                .into_iter()
                .find_map(|fraction| self.first_fit(from, fraction));
            if let Some(order) = fit {
                return order;
            }
        }
        self.min_order.max(self.get_order(self.size))
    }

    fn more_waste(&self) -> u32 {
        let objects = self.min_objects.max(1);
        let from = self.min_order.max(self.get_order(objects * self.size));
        if let Some(order) = self.counter_limit(from) {
            return order;
        }
        [16, 8, 4, 2]
            .into_iter()
            .find_map(|fraction| self.first_fit(from, fraction))
            .unwrap_or_else(|| self.get_order(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(size: u64, cpus: u32) -> (u32, u64) {
        let choice = calculate_order(&OrderParams::new(size, cpus, 4096)).unwrap();
        (choice.order, choice.objs_per_slab)
    }

    #[test]
    fn well_known_caches_get_their_orders() {
        // dentry and kmalloc-1k of a host with 2 processors, then with 16.
        assert_eq!(order(192, 2), (0, 21));
        assert_eq!(order(1024, 2), (2, 16));
        assert_eq!(order(1024, 16), (3, 32));
        assert_eq!(order(4096, 2), (3, 8));
        assert_eq!(order(8192, 64), (3, 4));
    }

    #[test]
    fn the_choice_names_waste_and_the_fallback_slab() {
        // ext4_inode_cache of a 5.4 host: slots of 1096 bytes, 29 in 8 pages.
        let choice = calculate_order(&OrderParams::new(1096, 64, 4096)).unwrap();
        assert_eq!((choice.order, choice.objs_per_slab), (3, 29));
        assert_eq!(choice.waste_bytes, 32_768 - 29 * 1096);
        assert_eq!(choice.fallback_order, 0);
        assert_eq!(choice.fallback_objs_per_slab, 3);
    }

    #[test]
    fn the_two_rules_differ_where_two_objects_waste_a_quarter() {
        let old = |size| {
            let params = OrderParams::new(size, 4, 4096).with_rule(OrderRule::FewerObjects);
            calculate_order(&params).unwrap().order
        };
        assert_eq!((old(10_920), order(10_920, 4).0), (3, 3));
        assert_eq!((old(10_928), order(10_928, 4).0), (2, 3));
        assert_eq!((old(12_280), order(12_280, 4).0), (2, 3));
        assert_eq!((old(12_288), order(12_288, 4).0), (3, 3));
    }

    #[test]
    fn boot_options_move_the_choice() {
        let base = OrderParams::new(64, 2, 4096);
        let min_order = OrderParams {
            min_order: 2,
            ..base
        };
        assert_eq!(calculate_order(&min_order).unwrap().order, 2);
        let small = OrderParams {
            max_order: 0,
            ..OrderParams::new(1024, 64, 4096)
        };
        assert_eq!(calculate_order(&small).unwrap().order, 0);
        let many = OrderParams {
            min_objects: Some(100),
            ..base
        };
        assert_eq!(calculate_order(&many).unwrap().order, 1);
    }

    #[test]
    fn large_slots_take_the_order_they_need_and_no_more() {
        assert_eq!(order(40_000, 4), (4, 1));
        assert_eq!(order(4 << 20, 4), (10, 1));
        assert_eq!(
            calculate_order(&OrderParams::new((4 << 20) + 1, 4, 4096)),
            None
        );
    }

    #[test]
    fn the_object_counter_limits_the_order() {
        // 1-byte slots on 64 KiB pages: 65,536 would not fit in 15 bits.
        let choice = calculate_order(&OrderParams::new(1, 2, 65_536)).unwrap();
        assert_eq!(choice.order, 0);
        let eight = OrderParams {
            min_order: 3,
            ..OrderParams::new(8, 2, 65_536)
        };
        assert_eq!(calculate_order(&eight).unwrap().order, 1);
    }

    #[test]
    fn parameters_that_no_kernel_has_are_refused() {
        for (size, page) in [(0, 4096), (64, 0), (64, 4095), (u64::MAX, 4096)] {
            assert_eq!(calculate_order(&OrderParams::new(size, 2, page)), None);
        }
        let extreme = OrderParams {
            min_objects: Some(u32::MAX),
            min_order: u32::MAX,
            max_order: u32::MAX,
            ..OrderParams::new(8, u32::MAX, 4096)
        };
        assert!(calculate_order(&extreme).is_some());
    }

    #[test]
    fn more_objects_ask_for_a_higher_order() {
        let with = |min_objects| OrderParams {
            min_objects: Some(min_objects),
            ..OrderParams::new(512, 2, 4096)
        };
        let orders = [8, 16, 32, 64].map(|n| calculate_order(&with(n)).unwrap().order);
        assert_eq!(orders, [0, 1, 2, 3]);
    }
}
