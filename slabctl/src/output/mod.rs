//! Machine-readable output: JSON documents, JSON lines and their schemas.
//!
//! The contract: field names are the kernel's attribute names where one
//! exists; integers are exact and never scaled; what is unknown is `null`,
//! never 0; an estimate is named in `approx`. Changes that only add keep the
//! `/1` of a document. What is written depends on the snapshot alone, so the
//! same capture gives the same bytes every time.
//!
//! Nothing here chooses, sorts or filters caches.

pub(crate) mod dump;
pub(crate) mod envelope;
mod escape;
pub(crate) mod json;
pub(crate) mod json_advise;
pub(crate) mod json_bench;
pub(crate) mod json_check;
pub(crate) mod json_diff;
pub(crate) mod json_doctor;
pub(crate) mod json_dump;
pub(crate) mod json_explain;
pub(crate) mod json_ps;
pub(crate) mod json_shrink;
pub(crate) mod json_sites;
pub(crate) mod json_stat;
pub(crate) mod json_thread;
pub(crate) mod json_tune;
pub(crate) mod json_validate;
pub(crate) mod jsonl;
pub(crate) mod machine;
mod parts;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod totals;
mod unknown;

#[cfg(test)]
mod check;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
