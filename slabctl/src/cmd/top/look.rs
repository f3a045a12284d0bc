//! Colours and signs for this terminal, from options and environment.

use tui::glyphs::Glyphs;
use tui::theme::Theme;

use super::super::Context;
use crate::cli::{Color, Top};
use crate::fail::Failure;

/// The theme: without colour where colour is not wanted, whatever was named.
pub(super) fn theme(context: &Context, args: &Top, configured: Theme) -> Result<Theme, Failure> {
    let named = match &args.theme {
        Some(name) => Theme::from_name(name).ok_or_else(|| {
            let known = Theme::NAMES.map(|(name, _)| name);
            Failure::usage(format!("no theme {name:?}"))
                .hint(format!("there are {}", known.join(", ")))
        })?,
        None => configured,
    };
    if !context.screen.colour {
        tui::run::without_colour();
        return Ok(Theme::Mono);
    }
    if context.global.color == Color::Always {
        tui::run::with_colour();
    }
    Ok(named)
}

/// The signs: Unicode where the locale has it.
pub(super) fn glyphs() -> Glyphs {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
    Glyphs::for_locale(names.each_ref().map(Option::as_deref))
}

/// A terminal that cannot move its cursor gets lines.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}
