//! Manual pages, made from the command line's own definition.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;

use super::Context;
use crate::cli::Cli;
use crate::fail::Status;

/// What the definition does not hold.
const TAIL: &str = r"
.SH EXIT STATUS
.TP
0
Done.
.TP
1
Failed; one line on standard error says why.
.TP
2
Wrong usage.
.TP
3
Findings (validate, explain, diff \-\-exit\-code).
.TP
4
No such cache.
.TP
69
The source is not available on this machine.
.TP
77
Permission is missing; the kernel lets only root read slab data.
.PP
Of check, as monitoring systems expect: 0 ok, 1 warning, 2 critical, 3 unknown.
.SH FILES
.TP
/sys/kernel/slab
One directory a cache, links for merged names.
.TP
/proc/slabinfo
One line a cache.
.TP
/proc/meminfo
The kernel's own sums: Slab, SReclaimable, SUnreclaim.
.TP
/sys/kernel/debug/slab
Call sites of caches that are booted with slab_debug=U.
.SH ENVIRONMENT
.TP
NO_COLOR, CLICOLOR, CLICOLOR_FORCE
Whether colour is used.
.TP
COLUMNS
Width of the screen where the terminal does not tell.
";

/// Writes all pages into `dir`, or the main page to standard output.
pub(crate) fn run(dir: Option<&Path>) -> anyhow::Result<Status> {
    let command = Cli::command().disable_help_subcommand(true);
    let Some(dir) = dir else {
        let mut out = Context::out();
        page(&command, &mut out)?;
        out.flush()?;
        return Ok(Status::Ok);
    };
    let context = |e: io::Error| anyhow::anyhow!("man: {}: {e}", dir.display());
    fs::create_dir_all(dir).map_err(context)?;
    let mut built = command.clone();
    built.build();
    write_page(&command, "slabctl", dir)?;
    for sub in built.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = format!("slabctl-{}", sub.get_name());
        let page = sub
            .clone()
            .display_name(&name)
            .bin_name(format!("slabctl {}", sub.get_name()));
        write_page(&page, &name, dir)?;
    }
    Ok(Status::Ok)
}

fn write_page(command: &clap::Command, name: &str, dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(format!("{name}.1"));
    let mut text = Vec::new();
    page(command, &mut text)?;
    fs::write(&path, text).map_err(|e| anyhow::anyhow!("man: {}: {e}", path.display()))
}

fn page(command: &clap::Command, out: &mut dyn io::Write) -> io::Result<()> {
    let man = Man::new(command.clone()).section("1");
    man.render(out)?;
    out.write_all(TAIL.as_bytes())
}
