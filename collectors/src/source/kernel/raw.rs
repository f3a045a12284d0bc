//! Every attribute file of one cache as it is, with what is known of it.
//!
//! Purpose: what the model has no place for, such as an attribute of a later
//! kernel. Source of truth: the directory itself; meanings are those of
//! `attributes`. It interprets no value. Files that are written to, and those
//! whose reading walks all objects, are named and not read.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::attributes::{self, ATTRIBUTES, Form};
use super::{BASES, bare_directory};
use crate::error::Error;
use crate::model::{Cache, Flag, Quantity};
use crate::source::archive;
use crate::source::capture::{find_root, tar_tree, unpacked};
use crate::source::tree::{DirTree, EntryKind, Keep, Tree};

/// Attributes of one cache that are listed; kernels have some 75.
const MAX_ATTRIBUTES: usize = 1000;
/// Bytes of one value; the kernel's own limit is a page.
const MAX_VALUE: usize = 64 << 10;

/// Files that are not read, and what they are.
const UNREAD: [(&str, &str); 4] = [
    ("shrink", "Written to: gives empty slabs back."),
    ("validate", "Written to: has the kernel check the objects."),
    (
        "alloc_calls",
        "Who allocated the objects (up to Linux 5.13).",
    ),
    (
        "free_calls",
        "Who freed the slots' previous objects (up to Linux 5.13).",
    ),
];

/// What is known of further attributes.
const MORE: [(&str, &str); 2] = [
    (
        "reserved",
        "Bytes at the end of a slab that are kept free (2.6.39 to 4.18).",
    ),
    ("skip_kfence", "KFENCE takes no objects of this cache."),
];

/// One attribute file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAttribute {
    /// Its name.
    pub name: String,
    /// Its text without the line end; `None` when it was not read.
    pub value: Option<String>,
    /// Why it could not be read; `None` when it was, or was not tried.
    pub error: Option<String>,
    /// What it is; `None` when this program does not know it.
    pub meaning: Option<&'static str>,
    /// It is an event counter (CONFIG_SLUB_STATS).
    pub counter: bool,
}

/// All attribute files of a cache, by name, below a machine's files; `id` is its
/// directory. `None` when there is no such directory.
pub fn attributes(tree: &dyn Tree, id: &str) -> Option<Vec<RawAttribute>> {
    let bare = bare_directory(tree).then_some(".");
    let bases = BASES.into_iter().chain(bare);
    let (slab, entries) = bases.into_iter().find_map(|base| {
        let slab = tree.descend(base).ok()?;
        let entries = slab.list(id).ok()?;
        Some((slab, entries))
    })?;
    let files = entries.into_iter().filter(|e| e.kind == EntryKind::File);
    let files = files.take(MAX_ATTRIBUTES);
    Some(files.map(|file| read(&*slab, id, file.name)).collect())
}

fn read(slab: &dyn Tree, id: &str, name: String) -> RawAttribute {
    let (meaning, counter) = meaning(&name);
    let mut attribute = RawAttribute {
        value: None,
        error: None,
        meaning,
        counter,
        name,
    };
    if UNREAD.iter().any(|(unread, _)| *unread == attribute.name) {
        return attribute;
    }
    let mut bytes = Vec::new();
    let path = format!("{id}/{}", attribute.name);
    match slab.read_attribute(&path, Keep::No, &mut bytes) {
        Ok(()) => {
            bytes.truncate(MAX_VALUE);
            let text = String::from_utf8_lossy(&bytes);
            attribute.value = Some(text.trim_end_matches('\n').to_owned());
        }
        Err(error) => attribute.error = Some(error.to_string()),
    }
    attribute
}

/// What an attribute is, and whether it is an event counter.
fn meaning(name: &str) -> (Option<&'static str>, bool) {
    let counters = attributes::counters();
    let known = ATTRIBUTES.iter().copied().chain(counters);
    if let Some(attribute) = known.into_iter().find(|a| a.name == name) {
        let text = match attribute.form {
            Form::Number(q) | Form::Nodes(q) => q.doc(),
            Form::CpuPartial => Quantity::SlabsCpuPartial.doc(),
            Form::Flag(flag) => flag.doc(),
            Form::Ctor => "Constructor of the objects; empty when there is none.",
            Form::Counter(id) => return (Some(id.doc()), true),
        };
        return (Some(text), false);
    }
    let other = UNREAD.iter().chain(&MORE).find(|(known, _)| *known == name);
    (other.map(|(_, text)| *text), false)
}

/// The same from the model, for a source without attribute files.
pub fn from_model(cache: &Cache) -> Vec<RawAttribute> {
    let one = |name: &str, value: String, meaning| RawAttribute {
        name: name.to_owned(),
        value: Some(value),
        error: None,
        meaning: Some(meaning),
        counter: false,
    };
    let figures = cache.known().iter().filter_map(|q| {
        let figure = cache.get(q)?;
        let mark = if figure.approx { "~" } else { "" };
        Some(one(q.name(), format!("{mark}{}", figure.value), q.doc()))
    });
    let flags = Flag::ALL.iter().filter_map(|flag| {
        let set = cache.flags.get(*flag)?;
        Some(one(flag.name(), u8::from(set).to_string(), flag.doc()))
    });
    figures.chain(flags).collect()
}

/// The files in a saved directory or archive, from where `proc` and `sys` are;
/// `None` for a bare text and for standard input, which can be read only once.
pub fn capture_tree(path: &Path) -> Result<Option<Box<dyn Tree>>, Error> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let failed = |e| Error::from_io(path, e);
    let tree: Box<dyn Tree> = if std::fs::metadata(path).map_err(failed)?.is_dir() {
        Box::new(DirTree::confined(path).map_err(failed)?)
    } else {
        let file = File::open(path).map_err(failed)?;
        let (head, rest) = unpacked(BufReader::new(file), path)?;
        if !archive::is_tar(&head) {
            return Ok(None);
        }
        Box::new(tar_tree(head, rest, path)?.0)
    };
    match find_root(&*tree, 2) {
        Some(root) if !root.is_empty() => Ok(Some(tree.descend(&root).map_err(failed)?)),
        _ => Ok(Some(tree)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tree::MemTree;

    #[test]
    fn known_attributes_have_a_meaning_and_unknown_ones_are_kept_as_they_are() {
        let mut tree = MemTree::new("x");
        for (file, text) in [
            ("object_size", "192\n"),
            ("alloc_fastpath", "7 C0=7\n"),
            ("ctor", "\n"),
            ("from_the_future", "a b\nc\n"),
            ("shrink", ""),
        ] {
            let path = format!("sys/kernel/slab/:a-0000192/{file}");
            tree.insert_file(&path, text.as_bytes().to_vec());
        }
        tree.insert_link("sys/kernel/slab/:a-0000192/a_link", "../dentry");
        let list = attributes(&tree, ":a-0000192").unwrap();
        let of = |name: &str| list.iter().find(|a| a.name == name).unwrap();
        assert_eq!(list.len(), 5);
        assert_eq!(of("object_size").value.as_deref(), Some("192"));
        assert!(of("object_size").meaning.unwrap().contains("Payload"));
        assert!(of("alloc_fastpath").counter && !of("object_size").counter);
        assert_eq!(of("ctor").value.as_deref(), Some(""));
        let unknown = of("from_the_future");
        assert_eq!(
            (unknown.value.as_deref(), unknown.meaning),
            (Some("a b\nc"), None)
        );
        // Reading it would be of no use, and for others not without effect.
        assert_eq!(of("shrink").value, None);
        assert_eq!(attributes(&tree, "none"), None);
    }

    #[test]
    fn every_attribute_of_a_real_kernel_is_known() {
        for kernel in [
            "deb6.1-cloud",
            "custom6.12-lite-stats-numa2",
            "custom7.3-lite-stats-numa2",
        ] {
            let path = format!(
                "{}/tests/data/kernels/{kernel}.tar.xz",
                env!("CARGO_MANIFEST_DIR")
            );
            let tree = capture_tree(Path::new(&path)).unwrap().unwrap();
            let entries = tree.list("sys/kernel/slab").unwrap();
            let dir = entries
                .iter()
                .find(|e| e.kind == EntryKind::Directory)
                .unwrap();
            let list = attributes(&*tree, &dir.name).unwrap();
            assert!(list.len() > 20, "{kernel}: {}", list.len());
            let unknown: Vec<_> = list.iter().filter(|a| a.meaning.is_none()).collect();
            assert!(unknown.is_empty(), "{kernel}: {unknown:?}");
        }
    }

    #[test]
    fn a_bare_text_has_no_attribute_files() {
        let text = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/slabinfo/three-rows.txt"
        );
        assert!(capture_tree(Path::new(text)).unwrap().is_none());
        assert!(capture_tree(Path::new("/nowhere")).is_err());
    }
}
