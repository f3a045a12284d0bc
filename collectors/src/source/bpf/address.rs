//! Where the kernel keeps the descriptor of an address's page.
//!
//! Descriptors lie in one row: that of address A is at
//! `key + A / page size * size of a descriptor`. Key and size are learned from
//! pairs of a partial slab and a free object in it, of as many caches as have
//! one; nearly all must agree, else nothing is known. See collectors/bpf/objects.h.

use std::collections::BTreeMap;

use super::record::Seen;
use crate::model::Quantity;

/// How descriptors are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageKey {
    key: u64,
    descriptor: u64,
}

/// Sizes that a descriptor can have: 64 bytes on nearly all kernels.
const DESCRIPTORS: [u64; 5] = [64, 56, 72, 80, 96];
/// So many pairs must agree.
const LEAST: usize = 3;

impl PageKey {
    /// Learns it from caches that were seen.
    pub(super) fn learn(seen: &[Seen], page_size: u64) -> Option<Self> {
        let pairs = seen.iter().filter_map(|seen| {
            let (slab, object) = seen.sample?;
            let pages = seen.cache.get(Quantity::PagesPerSlab)?.value;
            let bytes = page_size.checked_mul(pages)?;
            // The first page of the slab, whose descriptor is the slab's.
            Some((slab, object.checked_div(bytes)?.checked_mul(pages)?))
        });
        Self::agree(&pairs.collect::<Vec<_>>())
    }

    fn agree(pairs: &[(u64, u64)]) -> Option<Self> {
        DESCRIPTORS.into_iter().find_map(|descriptor| {
            let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
            for (slab, page) in pairs {
                let key = slab.wrapping_sub(page.wrapping_mul(descriptor));
                *votes.entry(key).or_default() += 1;
            }
            let (key, count) = votes.into_iter().max_by_key(|(_, count)| *count)?;
            let most = count * 10 >= pairs.len() * 9;
            (count >= LEAST && most).then_some(Self { key, descriptor })
        })
    }

    /// What programs are told; a key of 0 where nothing is known.
    pub(super) const fn words(key: Option<Self>) -> [u64; 2] {
        match key {
            Some(known) => [known.key, known.descriptor],
            None => [0, 64],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: u64 = 0xffff_ea00_0000_0000;
    const FIRST: u64 = 0xffff_8880_0000_0000 >> 12;

    fn pair(page: u64, descriptor: u64) -> (u64, u64) {
        (MAP + page * descriptor, FIRST + page)
    }

    #[test]
    fn pairs_that_agree_tell_key_and_size() {
        for size in [64, 80] {
            let pairs: Vec<_> = [3, 77, 4096, 90_001].map(|page| pair(page, size)).into();
            let known = PageKey::agree(&pairs).unwrap();
            assert_eq!(known.descriptor, size);
            let (slab, page) = pair(1234, size);
            assert_eq!(known.key.wrapping_add(page.wrapping_mul(size)), slab);
        }
    }

    #[test]
    fn few_pairs_or_pairs_that_differ_tell_nothing() {
        assert_eq!(PageKey::agree(&[]), None);
        assert_eq!(PageKey::agree(&[pair(1, 64), pair(9, 64)]), None);
        let mixed = [
            pair(1, 64),
            pair(9, 64),
            pair(20, 64),
            (0x1000, 5),
            (0x9000, 7),
        ];
        assert_eq!(PageKey::agree(&mixed), None);
    }
}
