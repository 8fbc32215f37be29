"use strict";

// Draws the plots of a list of phases. `id` stands in front of the names of the page's elements.

drawers.load = (report, id) => {
  const lines = report.phases.flatMap((phase) =>
    phase.kinds.length > 1
      ? phase.kinds.map((kind) => ({ label: `${phase.name}: ${kind.name}`, latency: kind.latency_seconds }))
      : [{ label: phase.name, latency: phase.latency_seconds }]);
  throughputPlot(`${id}throughput`, report.phases.map((phase) => ({ label: phase.name, timeline: phase.timeline })));
  latencyPlot(`${id}latency`, lines);
};
