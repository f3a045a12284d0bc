//! Names close to one that does not exist, for "did you mean".

/// Names longer than this are not compared letter by letter.
const LONGEST: usize = 64;

/// Most names worth offering.
const SHOWN: usize = 5;

/// The names closest to `word`, best first: those one slip away, those that
/// hold it, those a few slips away, those that it holds. Case does not matter.
pub fn closest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    let slips = (word.chars().count() / 3).max(1);
    let rank = |name: &str| {
        let name = name.to_lowercase();
        match distance(&word, &name) {
            Some(n) if n <= 1 => Some(0),
            _ if name.contains(&word) => Some(1),
            Some(n) if n <= slips => Some(n),
            _ => (name.chars().count() > 2 && word.contains(&name)).then_some(LONGEST),
        }
    };
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| Some((rank(name)?, name)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(SHOWN);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Letters to insert, remove, replace or swap with their neighbour to get
/// from one word to the other; `None` for words too long to compare.
fn distance(a: &str, b: &str) -> Option<usize> {
    let a: Vec<char> = a.chars().take(LONGEST + 1).collect();
    let b: Vec<char> = b.chars().take(LONGEST + 1).collect();
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut line = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(line[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "dentry",
        "kmalloc-64",
        "kmalloc-cg-64",
        "inode_cache",
        "ext4_inode_cache",
        "TCP",
    ];

    #[test]
    fn slips_of_the_finger_are_forgiven() {
        assert_eq!(closest("dnetry", NAMES), ["dentry"]);
        assert_eq!(closest("Dentry", NAMES), ["dentry"]);
        assert_eq!(closest("inode", NAMES), ["ext4_inode_cache", "inode_cache"]);
        assert_eq!(closest("kmaloc-64", NAMES), ["kmalloc-64"]);
        assert_eq!(closest("tcp_sock", NAMES), ["TCP"]);
    }

    #[test]
    fn what_is_far_off_gives_nothing() {
        assert!(closest("", NAMES).is_empty());
        assert!(closest("zzzzzz", NAMES).is_empty());
        assert!(closest(&"x".repeat(10_000), NAMES).is_empty());
    }
}
