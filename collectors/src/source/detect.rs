//! What a text is, told from its content.

use crate::model::Layer;
use crate::parse::{
    alias_listing, crash_kmem, oom_table, sections, slabinfo, slabinfo_tool, slabtop, traces,
};

/// A form of text that holds slab data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Several files in one text: supportconfig, `head` or `tail` of many files.
    Sections,
    /// One table.
    Table(Layer),
    /// Call sites of one cache.
    Traces,
}

/// The kinds of table in a text, best first. More than one: a mail that quotes
/// two tools.
pub fn tables(text: &[u8]) -> Vec<Layer> {
    let found: [(Layer, bool); 6] = [
        (Layer::Slabinfo, slabinfo::recognise(text)),
        (Layer::SlabinfoTool, slabinfo_tool::recognise(text)),
        (Layer::Slabtop, slabtop::recognise(text)),
        (Layer::CrashKmem, crash_kmem::recognise(text)),
        (Layer::OomTable, oom_table::recognise(text)),
        (Layer::AliasListing, alias_listing::recognise(text)),
    ];
    found
        .into_iter()
        .filter_map(|(layer, yes)| yes.then_some(layer))
        .collect()
}

/// What the text is, or `None` when nothing in it is known.
pub fn text_kind(text: &[u8]) -> Option<TextKind> {
    if sections::recognise(text) {
        return Some(TextKind::Sections);
    }
    let table = tables(text).first().copied().map(TextKind::Table);
    table.or_else(|| traces::recognise(text).then_some(TextKind::Traces))
}
