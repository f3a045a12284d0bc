//! The document `slabctl.tune/1`: limits of caches, before and after.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::moment;
use crate::cmd::tune::Setting;

/// Limits of caches, as they were and as they are.
///
/// Later versions of this document may add fields, and keep those that are here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Name and version of this document.
    #[schemars(extend("const" = "slabctl.tune/1"))]
    schema: &'static str,
    /// When the document was made, RFC 3339 with offset.
    #[schemars(extend("format" = "date-time"))]
    generated_at: Option<String>,
    /// The limits that were asked for, or all of a cache.
    limits: Vec<SettingOut<'a>>,
}

/// One limit of one cache.
#[derive(Debug, Serialize, JsonSchema)]
struct SettingOut<'a> {
    /// The cache, as it was named.
    cache: &'a str,
    /// The attribute.
    #[schemars(extend("enum" = ["cpu_partial", "min_partial", "remote_node_defrag_ratio"]))]
    limit: &'static str,
    /// Its value before; null when the kernel lacks it.
    before: Option<u64>,
    /// The value that was asked for; null when it was only looked at.
    asked: Option<u64>,
    /// Its value now; null when the kernel lacks it.
    after: Option<u64>,
}

/// The document on these limits.
pub(crate) fn document(settings: &[Setting], now: Timestamp) -> Document<'_> {
    Document {
        schema: "slabctl.tune/1",
        generated_at: moment(Some(now)),
        limits: settings
            .iter()
            .map(|s| SettingOut {
                cache: &s.cache,
                limit: s.knob.name(),
                before: s.before,
                asked: s.asked,
                after: s.after,
            })
            .collect(),
    }
}
