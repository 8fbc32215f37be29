//! Small curves of the last minutes, as SVG that the server makes: no script, no colour of its own.

use maud::{Markup, html};

/// Points of a curve.
const POINTS: usize = 120;

/// Size of the picture in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;

/// A curve with its heading, the value now and the largest one. Each of `lines` has a value for each step,
/// the newest last; `None` where there is none. `figure` prints a value.
pub(super) fn curve(
    heading: &str,
    now: &Markup,
    lines: &[Vec<Option<f64>>],
    figure: impl Fn(f64) -> String,
) -> Markup {
    let values = lines.iter().flatten().flatten();
    let is_empty = values.clone().next().is_none();
    let most = values.copied().fold(0.0, f64::max);
    let label = format!("{heading} over the last ten minutes, at most {}", figure(most));
    html! {
        figure.curve {
            figcaption { (heading) " " b { (now) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                @for (index, line) in lines.iter().enumerate() {
                    @for points in runs(line, most) {
                        polyline.dashed[index > 0] points=(points) vector-effect="non-scaling-stroke" {}
                    }
                }
            }
            p.quiet { @if is_empty { "none in ten minutes" } @else { "at most " (figure(most)) " in ten minutes" } }
        }
    }
}

/// The points of a line, a text for each run without a gap.
fn runs(line: &[Option<f64>], most: f64) -> Vec<String> {
    let step = WIDTH / (POINTS - 1) as f64;
    let first = POINTS.saturating_sub(line.len());
    let mut runs: Vec<String> = Vec::new();
    let mut is_open = false;
    for (index, value) in line.iter().enumerate() {
        let Some(value) = value else {
            is_open = false;
            continue;
        };
        let x = (first + index) as f64 * step;
        let y = HEIGHT - 1.0 - (HEIGHT - 2.0) * if most > 0.0 { value / most } else { 0.0 };
        let point = format!("{x:.0},{y:.1}");
        match runs.last_mut().filter(|_| is_open) {
            Some(run) => {
                run.push(' ');
                run.push_str(&point);
            }
            // A single point has no length: one before makes it visible.
            None => runs.push(format!("{:.0},{y:.1} {point}", x - 2.0)),
        }
        is_open = true;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_newest_value_right_and_gaps_where_there_is_none() {
        let line = [Some(0.0), None, Some(10.0), Some(5.0)];
        assert_eq!(
            runs(&line, 10.0),
            ["232,47.0 234,47.0", "236,1.0 238,1.0 240,24.0"]
        );
        assert_eq!(runs(&[], 0.0), Vec::<String>::new());
        let drawn = curve("Requests", &html! { "5 a second" }, &[line.to_vec()], |value| {
            value.to_string()
        });
        let drawn = drawn.into_string();
        assert_eq!(drawn.matches("<polyline").count(), 2, "{drawn}");
        assert!(
            drawn.contains("aria-label=\"Requests over the last ten minutes, at most 10\""),
            "{drawn}"
        );
    }
}
