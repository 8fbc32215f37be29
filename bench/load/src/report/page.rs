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
