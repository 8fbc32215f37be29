"use strict";

// Draws the plots of the parts of a lab: what each way took for each question. `id` stands in front of the names of the
// page's elements.

drawers.lab = (report, id) => {
  report.parts.forEach((part, place) => {
    const lines = part.ways.flatMap((way) =>
      way.questions.map((question) => ({ label: `${way.name}: ${question.name}`, latency: question.latency_seconds })));
    if (lines.length > 0) latencyPlot(`${id}part-${place}`, lines);
  });
};
