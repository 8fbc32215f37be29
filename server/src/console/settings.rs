//! The configuration: every setting, its value, and whether that is the default.

use maud::html;

use super::frame::Place;
use super::paging::Params;
use super::{Made, Page};
use crate::config::Config;
use crate::server::Settings;

#[expect(clippy::unnecessary_wraps, reason = "all pages have this form")]
pub(super) fn page(settings: &Settings, _params: &Params) -> Made {
    let settings = settings.in_force().settings();
    let defaults = Config::default().settings();
    let rows: Vec<_> = settings.iter().zip(&defaults).collect();
    let changed = rows.iter().filter(|(own, default)| own != default).count();
    let body = html! {
        p {
            (changed) " of " (rows.len()) " settings are not the defaults. They come from the file, the environment or the command line, or follow from "
            code { "memory.total_bytes" } ". Some are taken over from the file at SIGHUP: docs/settings.md."
        }
        div.wide { table {
            caption { "Settings in force" }
            thead { tr { th scope="col" { "setting" } th scope="col" { "value" } th scope="col" { "from" } th scope="col" { "default" } } }
            tbody {
                @for ((name, value), (_, default)) in rows {
                    tr class=[(value != default).then_some("changed")] {
                        th scope="row" { code { (name) } }
                        td { code { (value) } }
                        td { @if value == default { "default" } @else { strong { "set" } } }
                        td { @if value != default { code { (default) } } }
                    }
                }
            }
        } }
    };
    Ok(Page {
        place: Place::Settings,
        title: "Configuration".to_owned(),
        body,
    })
}
