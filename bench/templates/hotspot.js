"use strict";

// Draws the plots of the report from `report`, which stands in the page.

const designs = report.designs;
const labels = designs.map((design) => design.name);

function regions() {
  const top = Math.max(1, ...designs.flatMap((design) => design.region_writes.map((region) => region.writes)));
  designs.forEach((design, index) => {
    const writes = design.region_writes.map((region) => region.writes);
    const step = Math.max(1, Math.ceil(writes.length / 16));
    const names = writes.map((_, place) => `${place + 1}`);
    bars(`regions-${index}`, 180, writes, [seriesColor(index)], names, (place) => place % step === 0, top);
  });
}

function rangeReads() {
  const colors = labels.map((_, index) => seriesColor(index));
  const one = (id, values, text) => bars(id, 290, values, colors, labels, () => true, Math.max(...values), text, true);
  one("read-time", designs.map((design) => design.range_seconds * 1e3), (time) => `${+time.toPrecision(3)}`);
  one("read-scans", designs.map((design) => design.range_scans), (count) => `${count}`);
  one("read-waste", designs.map((design) => design.range_bytes_read_per_byte_returned), (ratio) => `${+ratio.toPrecision(3)}`);
}

keepDrawn(() => {
  throughputPlot("throughput", designs.map((design) => ({ label: design.name, timeline: design.timeline })));
  latencyPlot("latency", designs.map((design) => ({ label: design.name, latency: design.latency_seconds })));
  const reads = designs.filter((design) => design.point_read_latency_seconds);
  if (reads.length > 0) {
    latencyPlot("gets", reads.map((design) => ({ label: design.name, latency: design.point_read_latency_seconds })));
  }
  regions();
  rangeReads();
});
