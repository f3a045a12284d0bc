//! The page order SLUB gives to a cache, predicted for a kernel.
//!
//! The rule itself is the engine's (`slabcore::order`). It cannot know: boot
//! options that are not in the parameters; processors that were plugged in
//! after the cache was made; an order written to the `order` attribute (Linux
//! before 5.9); bytes that `reserved` took from each slab (Linux 2.6.39 to
//! 4.17); `debug_guardpage_minorder`, which sets the largest order to 0;
//! CONFIG_SLUB_TINY, whose largest order is 1; and SLAB, which follows another
//! rule. Kernels before 5.11 counted possible processors (`nr_cpu_ids`), newer
//! ones the present ones: give the number that fits.

pub use slabcore::order::{OrderChoice, OrderParams, OrderRule, calculate_order};

/// The rule of a kernel release such as `6.1.0-57-cloud-amd64`.
pub fn rule_of_release(release: &str) -> Option<OrderRule> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    let major: u32 = parts.next()?.parse().ok()?;
    let minor: u32 = parts.next()?.parse().ok()?;
    Some(if (major, minor) >= (6, 7) {
        OrderRule::MoreWaste
    } else {
        OrderRule::FewerObjects
    })
}

/// The range of processor counts, up to 4096, that explains each of
/// `(slab_size, order)`; `None` when none does.
///
/// The rule uses only the number's bits, so the range is of powers of two.
pub fn explaining_cpus(
    samples: &[(u64, u32)],
    page_size: u64,
    rule: OrderRule,
) -> Option<std::ops::RangeInclusive<u32>> {
    let fits = |bits: &u32| {
        samples.iter().all(|(size, order)| {
            let params = OrderParams::new(*size, 1 << bits, page_size).with_rule(rule);
            calculate_order(&params).is_some_and(|choice| choice.order == *order)
        })
    };
    let first = (0..=12).find(fits)?;
    let last = (first..=12).take_while(fits).last()?;
    Some(1 << first..=(1 << (last + 1)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_name_their_rule() {
        assert_eq!(
            rule_of_release("6.1.0-57-cloud-amd64"),
            Some(OrderRule::FewerObjects)
        );
        assert_eq!(
            rule_of_release("6.12.117+deb12"),
            Some(OrderRule::MoreWaste)
        );
        assert_eq!(rule_of_release("7.0-rc1"), Some(OrderRule::MoreWaste));
        assert_eq!(
            rule_of_release("5.4.0-97-generic"),
            Some(OrderRule::FewerObjects)
        );
        assert_eq!(rule_of_release("next"), None);
    }
}
