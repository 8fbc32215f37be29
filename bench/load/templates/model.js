"use strict";

// Draws the medians of each pattern of a model, a bar for each layout. `id` stands in front of the names of the page's
// elements.

drawers.model = (report, id) => {
  report.patterns.forEach((pattern, place) => {
    const values = pattern.results.map((result) => (result.latency_seconds ? result.latency_seconds.p50 * 1e3 : 0));
    const labels = pattern.results.map((result) => result.layout);
    const colors = labels.map((_, index) => seriesColor(index));
    bars(`${id}pattern-${place}`, 220, values, colors, labels, () => true, Math.max(1e-9, ...values), (time) => `${+time.toPrecision(3)}`);
  });
};
