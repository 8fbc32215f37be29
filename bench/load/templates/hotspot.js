"use strict";

// Draws the plots of row-key designs. `id` stands in front of the names of the page's elements.

drawers.hotspot = (report, id) => {
  const designs = report.designs;
  const labels = designs.map((design) => design.name);
  const colors = labels.map((_, index) => seriesColor(index));

  throughputPlot(`${id}throughput`, designs.map((design) => ({ label: design.name, timeline: design.timeline })));
  latencyPlot(`${id}latency`, designs.map((design) => ({ label: design.name, latency: design.latency_seconds })));
  const reads = designs.filter((design) => design.point_read_latency_seconds);
  if (reads.length > 0) {
    latencyPlot(`${id}gets`, reads.map((design) => ({ label: design.name, latency: design.point_read_latency_seconds })));
  }

  const top = Math.max(1, ...designs.flatMap((design) => design.region_writes.map((region) => region.writes)));
  designs.forEach((design, index) => {
    const writes = design.region_writes.map((region) => region.writes);
    const step = Math.max(1, Math.ceil(writes.length / 16));
    const names = writes.map((_, place) => `${place + 1}`);
    bars(`${id}regions-${index}`, 180, writes, [seriesColor(index)], names, (place) => place % step === 0, top);
  });

  const one = (name, values, text) => bars(`${id}${name}`, 290, values, colors, labels, () => true, Math.max(1e-9, ...values), text);
  one("read-time", designs.map((design) => design.range_seconds * 1e3), (time) => `${+time.toPrecision(3)}`);
  one("read-scans", designs.map((design) => design.range_scans), (count) => `${count}`);
  one("read-waste", designs.map((design) => design.range_bytes_read_per_byte_returned), (ratio) => `${+ratio.toPrecision(3)}`);
};
