//! Contenders from policies and switches: every combination.

use loads::bench::Workload;
use loads::contender::options::SWITCHES;

use crate::cli::Switches;
use crate::fail::Failure;

/// Contenders at most.
const MOST: usize = 64;

/// The policies with every combination of the switches' values.
pub(super) fn contenders(policies: &[String], args: &Switches) -> Result<Vec<String>, Failure> {
    let mut list = policies.to_vec();
    for (name, values) in SWITCHES.iter().zip(values(args)) {
        if values.is_empty() {
            continue;
        }
        let mut values = values.clone();
        values.dedup();
        if list.len() * values.len() > MOST {
            return Err(Failure::usage(format!("more than {MOST} contenders")));
        }
        let with = |of: &String| -> Vec<String> {
            let named = values.iter().map(|value| format!("{of}/{name}={value}"));
            named.collect()
        };
        list = list.iter().flat_map(with).collect();
    }
    Ok(list)
}

/// Refuses switches for workloads that have nothing to switch.
pub(super) fn check(workload: &Workload, args: &Switches) -> Result<(), Failure> {
    if workload.has_caches() || values(args).iter().all(|values| values.is_empty()) {
        return Ok(());
    }
    let error = format!(
        "{} has no cache of its own to set switches of",
        workload.name
    );
    Err(Failure::usage(error))
}

/// In the order of [`SWITCHES`].
fn values(args: &Switches) -> [&Vec<u32>; 4] {
    [
        &args.min_objects,
        &args.max_order,
        &args.min_partial,
        &args.cpu_partial,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_contender_that_there_is() {
        let args = Switches {
            min_objects: vec![8, 16],
            min_partial: vec![0, 5],
            cpu_partial: vec![3],
            max_order: vec![1],
        };
        let policies = ["classic".to_owned(), "hybrid".to_owned()];
        let list = contenders(&policies, &args).unwrap();
        assert_eq!(list.len(), 8);
        assert_eq!(
            list[0],
            "classic/min-objects=8/max-order=1/min-partial=0/cpu-partial=3"
        );
        for name in &list {
            assert!(
                loads::contender::options::Options::parse(name).is_some(),
                "{name}"
            );
        }
        assert_eq!(
            contenders(&policies, &Switches::default()).unwrap(),
            policies
        );
    }

    #[test]
    fn too_many_are_refused() {
        let many = Switches {
            min_objects: (1..=40).collect(),
            ..Switches::default()
        };
        assert!(contenders(&["a".to_owned(), "b".to_owned()], &many).is_err());
    }
}
