//! The HTML page of a report, or of several on one page.
//!
//! Each kind of report has a template `KIND.html` for its part of the page and a script `KIND.js`
//! that draws its plots. Frame, style and shared script code are there once. Names of elements
//! begin with the section's id, so that a page can have a kind twice.

use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::grouped;
use crate::error::{Error, Result};

/// The templates by name.
const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("../../templates/page.html")),
    ("overview.html", include_str!("../../templates/overview.html")),
    ("hotspot.html", include_str!("../../templates/hotspot.html")),
    ("load.html", include_str!("../../templates/load.html")),
    ("lab.html", include_str!("../../templates/lab.html")),
    ("model.html", include_str!("../../templates/model.html")),
];

/// One report on a page.
#[derive(Debug, Serialize)]
pub struct Section {
    /// Name of the template and script.
    kind: &'static str,
    /// Letters only; one of its own for each section of a page.
    id: String,
    report: serde_json::Value,
}

impl Section {
    /// `kind` is one of `hotspot`, `load`, `lab` and `model`.
    pub fn new(kind: &'static str, id: &str, report: &impl Serialize) -> Result<Section> {
        Ok(Section {
            kind,
            id: id.to_owned(),
            report: serde_json::to_value(report).map_err(|error| Error::Report(error.to_string()))?,
        })
    }
}

/// A page of one file. `overview` stands in front of several sections; it is `None` for one.
pub fn page(title: &str, overview: Option<&impl Serialize>, sections: &[Section]) -> Result<String> {
    let failed = |error: minijinja::Error| Error::Report(error.to_string());
    let mut environment = Environment::new();
    for (name, template) in TEMPLATES {
        environment.add_template(name, template).map_err(failed)?;
    }
    environment.add_filter("grouped", |number: f64| grouped(number));
    environment.add_filter("ms", |seconds: f64| format!("{:.2}", seconds * 1e3));
    environment.add_filter("figure", |number: f64| super::figure(number));
    let template = environment.get_template("page.html").map_err(failed)?;
    template
        .render(minijinja::context! {
            title => title,
            overview => overview.map(|overview| Value::from(Serde(overview))),
            sections => Value::from(Serde(sections)),
            style => include_str!("../../templates/report.css"),
            plots => include_str!("../../templates/plots.js"),
            scripts => [
                include_str!("../../templates/hotspot.js"),
                include_str!("../../templates/load.js"),
                include_str!("../../templates/lab.js"),
                include_str!("../../templates/model.js"),
            ],
            uplot_style => include_str!("../../assets/uPlot.min.css"),
            uplot_script => include_str!("../../assets/uPlot.iife.min.js"),
        })
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    const STYLE: &str = include_str!("../../templates/report.css");

    /// The values of the style's colours: of the light page, or of the dark one.
    fn color(name: &str, is_dark: bool) -> [f64; 3] {
        let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
        let theme = if is_dark { dark } else { light };
        let (_, behind) = theme.split_once(&format!("--{name}: #")).unwrap();
        [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&behind[at..at + 2], 16).unwrap()) / 255.0)
    }

    /// Relative luminance, as WCAG 2 defines it.
    fn luminance(color: [f64; 3]) -> f64 {
        let linear = color.map(|part| {
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    /// Goal: the small text of every verdict can be read: contrast of 4.5 or more (WCAG 2, AA).
    #[test]
    fn verdicts_can_be_read() {
        let of_verdicts = STYLE.lines().filter(|line| line.starts_with(".verdict"));
        let names: Vec<&str> = of_verdicts
            .filter_map(|line| Some(line.rsplit_once("color: var(--")?.1.split_once(')')?.0))
            .collect();
        assert_eq!(names, ["faint", "good", "bad", "care"]);
        for (name, is_dark) in names.iter().flat_map(|name| [(name, false), (name, true)]) {
            for behind in ["card", "page"] {
                let pair = [color(name, is_dark), color(behind, is_dark)].map(luminance);
                let contrast = (pair[0].max(pair[1]) + 0.05) / (pair[0].min(pair[1]) + 0.05);
                assert!(
                    contrast >= 4.5,
                    "{name} on {behind}, dark: {is_dark}: {contrast:.2}"
                );
            }
        }
    }
}
