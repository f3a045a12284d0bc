//! `slabctl tune CACHE [LIMIT=VALUE..]`: shows a cache's limits, and changes them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use collectors::control::{CacheDir, Control, Knob};
use jiff::Timestamp;

use super::{Context, report, shrink};
use crate::cli::{Format, Tune as Args};
use crate::fail::{Failure, Status};
use crate::output::table::{Cell, Head, Table};
use crate::output::{json, json_tune};
use crate::{ask, open};

/// Bytes of an undo file that are read.
const MAX_UNDO: u64 = 1 << 20;

/// A limit, as it was and as it is to be.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) cache: String,
    pub(crate) knob: Knob,
    /// Before; `None` when the kernel lacks the attribute.
    pub(crate) before: Option<u64>,
    /// What was asked for; `None` when it was only looked at.
    pub(crate) asked: Option<u64>,
    /// After it was written.
    pub(crate) after: Option<u64>,
    dir: CacheDir,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    shrink::no_lines(context, "tune")?;
    let control = shrink::live(context, "tune")?;
    let mut settings = match (&args.undo, &args.cache) {
        (Some(file), _) => from_file(&control, file)?,
        (None, Some(cache)) => from_words(&control, cache, &args.limits)?,
        (None, None) => return Err(Failure::usage("tune needs a cache, or --undo FILE").into()),
    };
    let changes = |s: &&Setting| s.asked.is_some_and(|asked| s.before != Some(asked));
    let asked = settings.iter().any(|s| s.asked.is_some());
    if let Some(absent) = settings.iter().filter(changes).find(|s| s.before.is_none()) {
        let (cache, knob) = (&absent.cache, absent.knob.name());
        let error = format!("{cache}: this kernel does not have {knob}");
        return Err(Failure::new(Status::Unavailable, error).into());
    }
    let question: Vec<_> = settings.iter().filter(changes).map(sentence).collect();
    if !question.is_empty() {
        if !ask::go_on(&question.join("\n"), args.yes)? {
            context.note("nothing was changed");
            return Ok(Status::Failed);
        }
        // First the way back, then the change.
        if let Some(file) = &args.save {
            save(file, settings.iter().filter(changes))?;
        }
        let mut done = Vec::new();
        for setting in settings.iter().filter(changes) {
            if let Some(value) = setting.asked {
                if let Err(error) = setting.dir.set(setting.knob, value) {
                    // What was changed before it stays so: say how to undo that.
                    ways_back(context, &done);
                    return Err(refused(error, setting).into());
                }
                done.push(setting);
            }
        }
    }
    for setting in &mut settings {
        setting.after = setting.dir.get(setting.knob).map_err(open::with_hints)?;
    }
    let mut out = Context::out();
    match context.global.format() {
        Format::Json => json::write(&mut out, &json_tune::document(&settings, Timestamp::now()))?,
        _ => report::write_table(context, &table(&settings, asked), &mut out)?,
    }
    out.flush()?;
    ways_back(
        context,
        &settings.iter().filter(changes).collect::<Vec<_>>(),
    );
    Ok(Status::Ok)
}

/// The commands that put back what was changed.
fn ways_back(context: &Context, changed: &[&Setting]) {
    for setting in changed {
        if let Some(before) = setting.before {
            let (cache, knob) = (&setting.cache, setting.knob.name());
            context.note(&format!("back: slabctl tune {cache} {knob}={before}"));
        }
    }
}

/// What will happen, for the person who is asked.
fn sentence(setting: &Setting) -> String {
    let before = setting
        .before
        .map_or_else(|| "?".to_owned(), |v| v.to_string());
    let asked = setting
        .asked
        .map_or_else(|| "?".to_owned(), |v| v.to_string());
    let all = if setting.dir.id == setting.cache {
        String::new()
    } else {
        format!(" (and every other name of {})", setting.dir.id)
    };
    format!(
        "{}{all}: {} from {before} to {asked}, which {}.",
        setting.cache,
        setting.knob.name(),
        setting.knob.effect()
    )
}

fn refused(error: collectors::Error, setting: &Setting) -> Failure {
    let failure = open::with_hints(error);
    if setting.knob == Knob::CpuPartial {
        return failure.hint("debug caches, and every cache since Linux 7.0, take only 0");
    }
    failure
}

fn from_words(control: &Control, cache: &str, words: &[String]) -> Result<Vec<Setting>, Failure> {
    let pairs: Result<Vec<_>, _> = words.iter().map(|word| pair(word)).collect();
    let pairs = pairs?;
    let dirs = shrink::find(control, &[cache.to_owned()])?;
    let Some(dir) = dirs.into_iter().next() else {
        return Ok(Vec::new());
    };
    if pairs.is_empty() {
        let all = Knob::ALL.map(|knob| setting(cache, &dir, knob, None));
        return all.into_iter().collect();
    }
    let set = |(knob, value)| setting(cache, &dir, knob, Some(value));
    pairs.into_iter().map(set).collect()
}

fn setting(
    cache: &str,
    dir: &CacheDir,
    knob: Knob,
    asked: Option<u64>,
) -> Result<Setting, Failure> {
    Ok(Setting {
        cache: cache.to_owned(),
        knob,
        before: dir.get(knob).map_err(open::with_hints)?,
        asked,
        after: None,
        dir: dir.clone(),
    })
}

/// `min_partial=10`.
fn pair(word: &str) -> Result<(Knob, u64), Failure> {
    let parsed = word.split_once('=').and_then(|(name, value)| {
        let knob = Knob::from_name(name.trim())?;
        Some((knob, value.trim().parse().ok()?))
    });
    parsed.ok_or_else(|| {
        let names = Knob::ALL.map(Knob::name).join(", ");
        Failure::usage(format!("{word:?} is no limit with a number"))
            .hint(format!("write LIMIT=NUMBER; limits are {names}"))
    })
}

/// The lines that `--save` wrote: cache, limit, value.
fn from_file(control: &Control, file: &Path) -> Result<Vec<Setting>, Failure> {
    let broken = |why: String| Failure::new(Status::Failed, format!("{}: {why}", file.display()));
    let mut text = String::new();
    fs::File::open(file)
        .and_then(|f| f.take(MAX_UNDO).read_to_string(&mut text))
        .map_err(|e| broken(e.to_string()))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut settings = Vec::new();
    for (number, line) in lines {
        let parsed = line
            .rsplit_once(' ')
            .and_then(|(cache, word)| Some((cache, pair(word).ok()?)));
        let Some((cache, (knob, value))) = parsed else {
            return Err(broken(format!(
                "line {}: not CACHE LIMIT=NUMBER",
                number + 1
            )));
        };
        let dirs = shrink::find(control, &[cache.to_owned()])?;
        for dir in &dirs {
            settings.push(setting(cache, dir, knob, Some(value))?);
        }
    }
    if settings.is_empty() {
        return Err(broken("nothing to undo in it".to_owned()));
    }
    Ok(settings)
}

/// Writes what puts the limits back; an existing file is kept.
fn save<'s>(file: &Path, settings: impl Iterator<Item = &'s Setting>) -> Result<(), Failure> {
    let line = |s: &Setting| Some(format!("{} {}={}\n", s.cache, s.knob.name(), s.before?));
    let lines: String = settings.filter_map(line).collect();
    let text = format!("# slabctl tune --undo FILE puts these back\n{lines}");
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut f| f.write_all(text.as_bytes()))
        .map_err(|e| {
            let error = format!("cannot write {}: {e}; nothing was changed", file.display());
            Failure::new(Status::Failed, error)
        })
}

fn table(settings: &[Setting], asked: bool) -> Table {
    let mut heads = vec![Head::left("Cache"), Head::left("Limit")];
    if asked {
        heads.push(Head::right("Before"));
        heads.push(Head::right("After"));
    } else {
        heads.push(Head::right("Value"));
    }
    let mut table = Table::new(heads);
    let count = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
    for setting in settings {
        let mut row = vec![Cell::text(&*setting.cache), Cell::text(setting.knob.name())];
        if asked {
            row.push(count(setting.before));
        }
        row.push(count(setting.after));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_name_and_a_number() {
        assert_eq!(pair("min_partial=10").ok(), Some((Knob::MinPartial, 10)));
        for bad in [
            "min_partial",
            "=5",
            "min_partial=",
            "min_partial=-1",
            "order=3",
        ] {
            assert!(pair(bad).is_err(), "{bad}");
        }
    }
}
