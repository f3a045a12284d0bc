//! Compares the engine with its peers: every contender in a process of its own, in turns.
//!
//! `compare --help` tells the options. Each round starts one process for each
//! contender, which runs all loads of time; loads of memory get a process each.
//! Contenders take turns, beginning with another one each round, so that a busy
//! machine disturbs all of them alike. The median of the rounds is told.

use loads::contender::{self, PEERS};
use loads::load::{LOADS, Load, Run};
use loads::outcome::{self, Figures};
use std::process::{Command, ExitCode};

const HELP: &str = "\
usage: compare [OPTION]...
  --rounds N            rounds (default 5)
  --times N             times that each process runs a load; the median counts (default 3)
  --only TEXT[,TEXT]    loads whose name begins with one of these
  --engine POLICY       the policy that is held to the targets (default hybrid)
  --also NAME[,NAME]    other policies to show
  --preload NAME=FILE   a peer: malloc with this shared object preloaded; may be repeated
  --json FILE           writes the outcome as JSON, too";

struct Options {
    rounds: usize,
    times: usize,
    only: Vec<String>,
    engine: String,
    also: Vec<String>,
    preload: Vec<(String, String)>,
    json: Option<String>,
    /// Set in child processes: the contender and the load's name, or all loads of time.
    child: Option<(String, Option<String>)>,
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        times: 3,
        only: vec![],
        engine: "hybrid".into(),
        also: vec![],
        preload: vec![],
        json: None,
        child: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("{option} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("not a number: {text}"));
        match option.as_str() {
            "--rounds" => options.rounds = number(value()?)?,
            "--times" => options.times = number(value()?)?,
            "--only" => options.only = list(&value()?),
            "--engine" => options.engine = value()?,
            "--also" => options.also = list(&value()?),
            "--preload" => {
                let value = value()?;
                let (name, file) = value.split_once('=').ok_or("--preload needs NAME=FILE")?;
                options.preload.push((name.to_owned(), file.to_owned()));
            }
            "--json" => options.json = Some(value()?),
            "--child" => options.child = Some((value()?, None)),
            "--load" => {
                let load = value()?;
                options.child = options.child.map(|(name, _)| (name, Some(load)));
            }
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(options)
}

impl Options {
    fn loads(&self) -> impl Iterator<Item = Load> + '_ {
        let wanted = |load: &Load| {
            let name = load.name();
            self.only.is_empty() || self.only.iter().any(|text| name.starts_with(text.as_str()))
        };
        LOADS.iter().copied().filter(wanted)
    }

    /// What a child does: a line for each load, of its name and the figure.
    fn run_child(&self, name: &str, only: Option<&str>) {
        for load in self.loads() {
            let mine = match only {
                Some(only) => load.name() == only,
                None => !load.is_memory(),
            };
            if mine
                && let Some(Some(figure)) = contender::visit(
                    name,
                    Run {
                        load,
                        times: self.times,
                    },
                )
            {
                println!("{} {figure}", load.name());
            }
        }
    }

    /// Starts a child and gives its lines.
    fn child(&self, name: &str, load: Option<Load>) -> Result<Vec<(String, f64)>, String> {
        let me = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(me);
        command.args(["--times", &self.times.to_string()]);
        if !self.only.is_empty() {
            command.args(["--only", &self.only.join(",")]);
        }
        let preload = self.preload.iter().find(|(of, _)| of == name);
        match preload {
            Some((_, file)) => command.env("LD_PRELOAD", file).args(["--child", "malloc"]),
            None => command.args(["--child", name]),
        };
        if let Some(load) = load {
            command.args(["--load", &load.name()]);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name}: {}: {text}", output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter_map(|line| {
            let (load, figure) = line.split_once(' ')?;
            Some((load.to_owned(), figure.parse().ok()?))
        });
        Ok(lines.collect())
    }

    fn compare(&self) -> Result<(), String> {
        let mut peers: Vec<String> = PEERS.iter().map(|name| (*name).to_owned()).collect();
        peers.extend(self.preload.iter().map(|(name, _)| name.clone()));
        let mut names = vec![self.engine.clone()];
        names.extend(self.also.iter().cloned());
        names.extend(peers.iter().cloned());
        let mut all: Vec<_> = self
            .loads()
            .map(|load| Figures {
                load,
                of: names.iter().map(|name| (name.clone(), vec![])).collect(),
            })
            .collect();
        let mut order = names.clone();
        for round in 0..self.rounds {
            for name in &order {
                let mut lines = self.child(name, None)?;
                for load in self.loads().filter(|load| load.is_memory()) {
                    lines.extend(self.child(name, Some(load))?);
                }
                for (load, figure) in lines {
                    let of_load = all.iter_mut().find(|figures| figures.load.name() == load);
                    let place = of_load.and_then(|it| it.of.iter_mut().find(|of| of.0 == *name));
                    if let Some((_, figures)) = place {
                        figures.push(figure);
                    }
                }
            }
            order.rotate_left(1);
            eprintln!("round {} of {}", round + 1, self.rounds);
        }
        let outcomes: Vec<_> = all
            .iter()
            .filter_map(|figures| figures.decide(&self.engine, &peers))
            .collect();
        print!("{}", outcome::table(&outcomes, &self.engine));
        if let Some(file) = &self.json {
            let text = format!("{:#}\n", outcome::json(&outcomes, self.rounds));
            std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let done = options().and_then(|options| match options.child.clone() {
        Some((name, load)) => {
            options.run_child(&name, load.as_deref());
            Ok(())
        }
        None => options.compare(),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
