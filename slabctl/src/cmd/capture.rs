//! To come.
use super::Context;
pub(crate) fn run(
    _context: &Context,
    _args: &crate::cli::Capture,
) -> anyhow::Result<crate::fail::Status> {
    anyhow::bail!("to come")
}
