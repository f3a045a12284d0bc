//! `slabctl capture FILE`: all slab state of this machine in one file.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use collectors::Error;
use collectors::source::Demand;
use collectors::source::tree::DirTree;
use collectors::source::write::{self, Absent, Collected, Form, Options};
use collectors::units::{self, Scale};

use super::Context;
use crate::cli::Capture;
use crate::fail::{Failure, Status};
use crate::open;

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Capture) -> anyhow::Result<Status> {
    if context.global.from.is_some() {
        return Err(
            Failure::usage("capture reads a machine; --from names a saved file")
                .hint("a saved file can be copied as it is")
                .into(),
        );
    }
    open::no_demo(
        &context.global,
        "capture reads a machine; --demo is none, and has no files to save",
    )?;
    let stream = args.file.as_os_str() == "-";
    let form = if stream {
        if std::io::stdout().is_terminal() {
            return Err(Failure::usage("a tar archive is not for a terminal")
                .hint("name a file, or pipe it: slabctl capture - | ssh HOST 'cat > slab.tar'")
                .into());
        }
        Form::Tar
    } else {
        form_of(&args.file)?
    };
    if !stream && !args.force {
        // Said before the kernel is troubled; writing checks it again.
        refuse_existing(&args.file)?;
    }
    let root = context.global.root.as_deref().unwrap_or("/".as_ref());
    let collected = collect(root, args.traces).map_err(open::with_hints)?;
    let bytes = write::pack(&collected, form)?;
    if stream {
        let mut out = Context::out();
        out.write_all(&bytes)?;
        out.flush()?;
    } else {
        save(&bytes, args)?;
    }
    say(context, args, &collected, bytes.len());
    Ok(Status::Ok)
}

/// Writes all slab state below `root` into a new file; a line about it.
pub(crate) fn write_file(root: &Path, file: &Path) -> Result<String, Failure> {
    let form = form_of(file)?;
    refuse_existing(file)?;
    let collected = collect(root, false).map_err(open::with_hints)?;
    let bytes = write::pack(&collected, form)
        .map_err(|error| Failure::new(Status::Failed, error.to_string()))?;
    write::save(&bytes, file, false)?;
    let size = units::size(bytes.len() as u64, Scale::Iec);
    let place = file.display();
    Ok(format!("{place}: {size}, {} caches", collected.caches))
}

fn form_of(file: &Path) -> Result<Form, Failure> {
    Form::of_name(file).ok_or_else(|| {
        Failure::usage(format!(
            "capture: {}: the name tells the form: .tar, .tar.gz or .tar.zst",
            file.display()
        ))
    })
}

fn exists(file: &Path) -> Failure {
    Failure::new(
        Status::Failed,
        format!("{} is there already", file.display()),
    )
    .hint("--force overwrites it")
}

fn refuse_existing(file: &Path) -> Result<(), Failure> {
    match file.symlink_metadata() {
        Ok(_) => Err(exists(file)),
        Err(_) => Ok(()),
    }
}

fn save(bytes: &[u8], args: &Capture) -> Result<(), Failure> {
    match write::save(bytes, &args.file, args.force) {
        Err(Error::Write { source, .. })
            if !args.force && source.kind() == std::io::ErrorKind::AlreadyExists =>
        {
            Err(exists(&args.file))
        }
        other => Ok(other?),
    }
}

fn collect(root: &Path, traces: bool) -> Result<Collected, Error> {
    let tree = DirTree::trusted(root).map_err(|e| Error::from_io(root, e))?;
    let options = Options {
        traces,
        walk_limit: Demand::WALK_LIMIT,
        page_size: u64::try_from(rustix::param::page_size()).ok(),
        program: concat!("slabctl ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    write::collect(&tree, &options)
}

/// What was written and what is not in it.
fn say(context: &Context, args: &Capture, collected: &Collected, size: usize) {
    let place = if args.file.as_os_str() == "-" {
        "standard output".into()
    } else {
        args.file.display().to_string()
    };
    let size = units::size(size as u64, Scale::Iec);
    let moved = match &collected.changes {
        Some(changes) if !changes.changed.is_empty() => {
            format!(", {} changed meanwhile", changes.changed.len())
        }
        _ => String::new(),
    };
    let unread = match collected.unread.len() {
        1 => "1 file unreadable".to_owned(),
        n => format!("{n} files unreadable"),
    };
    context.note(&format!(
        "{place}: {size}, {} caches{moved}, {unread}",
        collected.caches
    ));
    if let Some(first) = first_slab_file(&collected.unread) {
        context.note(&format!(
            "warning: {} could not be read: {} (all are in the MANIFEST)",
            first.path, first.why
        ));
    }
    if let Some(first) = collected.left_out.first() {
        context.note(&format!(
            "warning: {} list walks left out, the first {}: {}",
            collected.left_out.len(),
            first.path,
            first.why
        ));
    }
}

/// A missing file of the machine is no loss worth a warning; slab data is.
fn first_slab_file(unread: &[Absent]) -> Option<&Absent> {
    unread.iter().find(|absent| absent.path.contains("slab"))
}
