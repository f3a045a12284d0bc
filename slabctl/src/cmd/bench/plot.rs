//! Results as a drawing: a panel for every figure of every workload.
//!
//! Shown are medians with the quartiles of the rounds as whiskers, and the
//! machine. A scale is logarithmic where the medians lie far apart, and says so.
//! What it does not do: fill in what a contender has no figure of.

mod bars;
mod canvas;
mod panel;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use loads::figure::{median, quartiles};
use plotters::coord::Shift;
use plotters::prelude::*;

use self::canvas::Canvas;
use self::panel::{Dot, Panel, Series};
use super::{CaseResult, Plan, WorkloadResult};
use crate::fail::{Failure, Status};
use crate::output::machine::Machine;

/// Size of a panel in pixels.
const PANEL: (u32, u32) = (620, 380);
/// Height of the head with the legend.
const HEAD: u32 = 78;
/// Panels beside each other.
const ACROSS: usize = 2;
/// Most panels in one drawing: a picture of them is 40 megabytes before it is packed.
const MOST: usize = 60;

/// How a drawing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Svg,
    Png,
}

/// A new file for a drawing, of a kind that its name says.
#[derive(Debug)]
pub(super) struct Plot {
    file: File,
    kind: Kind,
}

impl Plot {
    /// Makes the file, before anything is measured.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let kind = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Kind::Svg,
            Some("png") => Kind::Png,
            _ => {
                let why = format!("--plot {}: a drawing ends in .svg or .png", path.display());
                return Err(Failure::usage(why));
            }
        };
        let file = File::options().write(true).create_new(true).open(path);
        let file =
            file.map_err(|e| Failure::new(Status::Failed, format!("{}: {e}", path.display())))?;
        Ok(Self { file, kind })
    }

    /// Draws into the file.
    pub(super) fn write(self, plan: &Plan, results: &[WorkloadResult]) -> anyhow::Result<()> {
        let panels = panels(plan, results);
        anyhow::ensure!(
            panels.len() <= MOST,
            "{} panels are more than the {MOST} of a drawing: choose workloads",
            panels.len()
        );
        let size = size(panels.len());
        let mut out = BufWriter::new(self.file);
        match self.kind {
            Kind::Svg => {
                let mut text = String::new();
                let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
                draw(&root, plan, &panels)?;
                drop(root);
                out.write_all(text.as_bytes())?;
            }
            Kind::Png => {
                let mut canvas = Canvas::new(size);
                let root = (&mut canvas).into_drawing_area();
                draw(&root, plan, &panels)?;
                drop(root);
                canvas.write_png(&mut out)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn size(panels: usize) -> (u32, u32) {
    let across = panels.clamp(1, ACROSS);
    let down = panels.div_ceil(ACROSS).max(1);
    let times = |one: u32, n: usize| one * u32::try_from(n).unwrap_or(1);
    (times(PANEL.0, across), HEAD + times(PANEL.1, down))
}

/// What is drawn, from the rounds.
fn panels(plan: &Plan, results: &[WorkloadResult]) -> Vec<Panel> {
    let mut list = Vec::new();
    for result in results {
        let mut figures: Vec<&(String, String)> = Vec::new();
        for figure in result.cases.iter().flat_map(|case| &case.figures) {
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
        for (figure, unit) in figures {
            let series = plan.contenders.iter().map(|contender| Series {
                name: contender.clone(),
                dots: { result.cases.iter() }
                    .map(|case| dot(case, contender, figure))
                    .collect(),
            });
            list.push(Panel {
                title: format!("{}: {figure}", result.workload.name),
                unit: unit.clone(),
                of: result.workload.of,
                cases: result.cases.iter().map(|case| case.case).collect(),
                series: series.collect(),
            });
        }
    }
    list
}

fn dot(case: &CaseResult, contender: &str, figure: &str) -> Option<Dot> {
    let rounds = case.of(contender, figure);
    let (low, high) = quartiles(rounds)?;
    Some(Dot {
        middle: median(rounds)?,
        low,
        high,
    })
}

fn draw<B: DrawingBackend>(
    root: &DrawingArea<B, Shift>,
    plan: &Plan,
    panels: &[Panel],
) -> anyhow::Result<()> {
    let failed = |e: String| anyhow::anyhow!("the drawing failed: {e}");
    let all = || -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        root.fill(&WHITE)?;
        let (head, body) = root.split_vertically(HEAD);
        draw_head(&head, plan)?;
        let across = panels.len().clamp(1, ACROSS);
        let cells = body.split_evenly((panels.len().div_ceil(across).max(1), across));
        for (panel, cell) in panels.iter().zip(&cells) {
            panel.draw(cell)?;
        }
        root.present()
    };
    all().map_err(|e| failed(e.to_string()))
}

/// What was measured, on which machine, and the colour of each contender.
fn draw_head<B: DrawingBackend>(
    head: &DrawingArea<B, Shift>,
    plan: &Plan,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let machine = Machine::here();
    let title = format!(
        "slabctl bench: medians of {} rounds with quartiles, {} threads, less is better",
        plan.rounds, plan.threads
    );
    head.draw(&Text::new(title, (12, 8), (FONT, 16)))?;
    head.draw(&Text::new(machine.line(), (12, 28), (FONT, 13)))?;
    let mut at = 12;
    for (n, name) in plan.contenders.iter().enumerate() {
        let colour = colour(n);
        head.draw(&Rectangle::new([(at, 53), (at + 12, 65)], colour.filled()))?;
        head.draw(&Text::new(name.clone(), (at + 17, 52), (FONT, 14)))?;
        at += 17 + 9 * i32::try_from(name.chars().count()).unwrap_or(0) + 20;
    }
    Ok(())
}

/// Font of all text; a drawing of pixels has its own.
const FONT: &str = "sans-serif";

/// Colours that the colour-blind can tell apart (Okabe and Ito, 2008), black last.
fn colour(n: usize) -> RGBColor {
    const LIST: [RGBColor; 8] = [
        RGBColor(213, 94, 0),
        RGBColor(0, 114, 178),
        RGBColor(0, 158, 115),
        RGBColor(204, 121, 167),
        RGBColor(86, 180, 233),
        RGBColor(230, 159, 0),
        RGBColor(140, 130, 20),
        RGBColor(0, 0, 0),
    ];
    LIST[n % LIST.len()]
}

#[cfg(test)]
mod tests;
