//! The predicted slab orders against those of real kernels.

#![allow(clippy::unwrap_used)]

use collectors::analysis::order::{
    OrderParams, OrderRule, calculate_order, explaining_cpus, rule_of_release,
};

/// Every slot size in /sys/kernel/slab of Debian cloud kernels and a 6.18
/// host, with the processors of the machine; `-FZPU` is slab_debug=FZPU.
const ORDERS: &str = include_str!("data/order/sysfs.csv");

struct Row {
    kernel: &'static str,
    cpus: u32,
    slab_size: u64,
    order: u32,
    objs_per_slab: u64,
}

fn rows() -> Vec<Row> {
    ORDERS
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            Row {
                kernel: fields[0],
                cpus: fields[1].parse().unwrap(),
                slab_size: fields[2].parse().unwrap(),
                order: fields[3].parse().unwrap(),
                objs_per_slab: fields[4].parse().unwrap(),
            }
        })
        .collect()
}

#[test]
fn every_cache_of_five_kernels_has_the_predicted_order() {
    let rows = rows();
    assert!(rows.len() > 500, "{}", rows.len());
    for row in rows {
        let rule = rule_of_release(row.kernel).unwrap();
        let params = OrderParams::new(row.slab_size, row.cpus, 4096).with_rule(rule);
        let choice = calculate_order(&params).unwrap();
        assert_eq!(
            (choice.order, choice.objs_per_slab),
            (row.order, row.objs_per_slab),
            "slots of {} bytes on {}",
            row.slab_size,
            row.kernel
        );
    }
}

#[test]
fn the_number_of_processors_can_be_read_off_the_orders() {
    let of = |kernel: &str| -> Vec<(u64, u32)> {
        rows()
            .iter()
            .filter(|r| r.kernel == kernel)
            .map(|r| (r.slab_size, r.order))
            .collect()
    };
    let fit = |kernel, rule| explaining_cpus(&of(kernel), 4096, rule);
    assert_eq!(fit("6.18", OrderRule::MoreWaste), Some(2..=3));
    assert_eq!(fit("7.3-FZPU", OrderRule::MoreWaste), Some(4..=7));
    assert_eq!(fit("6.1", OrderRule::FewerObjects), Some(2..=3));
    // An order that no processor count explains.
    assert_eq!(
        explaining_cpus(&[(64, 7)], 4096, OrderRule::MoreWaste),
        None
    );
}
