//! Runs as another tool: by the name of a link, or as `slabctl compat NAME`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use collectors::source::Source;

use super::Context;
use crate::cli::Global;
use crate::compat::{self, Tool};
use crate::fail::{Failure, Status};
use crate::open;

/// `slabctl compat TOOL [OPTIONS]`.
pub(crate) fn from_command(context: &Context, mut args: Vec<OsString>) -> anyhow::Result<Status> {
    let name = args.remove(0);
    let Some(tool) = Tool::from_name(&name) else {
        let error = format!("compat: no tool {:?}", name.to_string_lossy());
        return Err(Failure::usage(error)
            .hint("slabinfo and slabtop are known")
            .into());
    };
    if context.global.bpf {
        let error = "--bpf is not for slabinfo and slabtop, whose figures are those of the files";
        return Err(Failure::usage(error).into());
    }
    run_with(tool, args, Some(&context.global))
}

/// Called through a link.
pub(crate) fn run(tool: Tool, args: Vec<OsString>) -> anyhow::Result<Status> {
    run_with(tool, args, None)
}

fn run_with(tool: Tool, args: Vec<OsString>, global: Option<&Global>) -> anyhow::Result<Status> {
    let mut open = |path: Option<&Path>| -> anyhow::Result<Box<dyn Source>> {
        let named = |of: &&Global| open::has_engine(of);
        match global.filter(named).filter(|_| path.is_none()) {
            Some(demo) => Ok(open::source(demo)?),
            None => Ok(open::at(
                path.or(global.and_then(|global| global.from.as_deref())),
                None,
            )?),
        }
    };
    let mut out = Context::out();
    let code = compat::run(
        tool,
        args,
        &mut open,
        &mut out,
        &mut std::io::stderr().lock(),
    )?;
    out.flush()?;
    Ok(Status::from_code(code))
}
