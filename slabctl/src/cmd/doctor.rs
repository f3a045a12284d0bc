//! To come.
use super::Context;
pub(crate) fn run(_context: &Context) -> anyhow::Result<crate::fail::Status> {
    anyhow::bail!("to come")
}
