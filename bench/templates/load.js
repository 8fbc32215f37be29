"use strict";

// Draws the plots of the report from `report`, which stands in the page.

const lines = report.phases.flatMap((phase) =>
  phase.kinds.length > 1
    ? phase.kinds.map((kind) => ({ label: `${phase.name}: ${kind.name}`, latency: kind.latency_seconds }))
    : [{ label: phase.name, latency: phase.latency_seconds }]);

keepDrawn(() => {
  throughputPlot("throughput", report.phases.map((phase) => ({ label: phase.name, timeline: phase.timeline })));
  latencyPlot("latency", lines);
});
