//! A second, naive reader of captures: what the parsers are checked against.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

/// Where the captures of real kernels are.
pub fn kernel(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/kernels/{name}.tar.xz"))
}

/// The files and links of a capture, as bytes.
pub struct Raw {
    pub files: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
}

impl Raw {
    /// Unpacks a capture.
    pub fn of(name: &str) -> Self {
        let file = std::fs::File::open(kernel(name)).unwrap();
        let mut raw = Self {
            files: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        let mut archive = tar::Archive::new(liblzma::read::XzDecoder::new(file));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let path = path.trim_start_matches("./").to_owned();
            if let Some(target) = entry.link_name().unwrap() {
                raw.links.insert(path, target.display().to_string());
            } else {
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                raw.files.insert(path, text);
            }
        }
        raw
    }

    /// The directories of the caches.
    pub fn directories(&self) -> Vec<&str> {
        let mut list: Vec<&str> = self
            .files
            .keys()
            .filter_map(|p| p.strip_prefix("sys/kernel/slab/")?.split('/').next())
            .collect();
        list.dedup();
        list
    }

    /// The first number of an attribute.
    pub fn number(&self, cache: &str, attribute: &str) -> Option<u64> {
        let text = self
            .files
            .get(&format!("sys/kernel/slab/{cache}/{attribute}"))?;
        let word = text.split(['(', ' ', '\n']).next()?;
        word.parse().ok()
    }

    /// Rows of /proc/slabinfo: name, `active_objs`, `num_objs`, pages, slabs.
    pub fn rows(&self) -> Vec<(String, [u64; 4])> {
        let text = &self.files["proc/slabinfo"];
        text.lines().skip(2).map(row).collect()
    }
}

/// One row of version 2.1 from a kernel whose names have no spaces.
pub fn row(line: &str) -> (String, [u64; 4]) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let n = |i: usize| words[i].parse().unwrap();
    (words[0].to_owned(), [n(1), n(2), n(5), n(14)])
}
