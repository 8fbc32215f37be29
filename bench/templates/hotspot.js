"use strict";

// Draws the plots of the report from `report`, which stands in the page. They are drawn again when the page changes
// between light and dark or its width changes, since a canvas knows neither.

const designs = report.designs;
const labels = designs.map((design) => design.design);

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColor = (index) => color(`--series-${(index % 4) + 1}`);
const short = (number) =>
  number >= 1e6 ? `${+(number / 1e6).toPrecision(3)} M` : number >= 1e3 ? `${+(number / 1e3).toPrecision(3)} k` : `${+number.toPrecision(3)}`;

function axis(options) {
  const line = { stroke: color("--line"), width: 1 };
  return { stroke: color("--faint"), grid: line, ticks: line, font: "12px system-ui, sans-serif", ...options };
}

function plot(id, height, options, data) {
  const place = document.getElementById(id);
  place.replaceChildren();
  new uPlot({ width: place.clientWidth, height, ...options }, data, place);
}

function throughput() {
  const rates = designs.map((design) => design.timeline.rows_per_s);
  const slots = Math.max(1, ...rates.map((rate) => rate.length));
  const slot = designs[0].timeline.slot_ms / 1000;
  const seconds = Array.from({ length: slots }, (_, index) => index * slot);
  const filled = rates.map((rate) => seconds.map((_, index) => rate[index] ?? null));
  const series = labels.map((label, index) => ({
    label,
    stroke: seriesColor(index),
    width: 2,
    points: { show: slots < 3 },
    value: (_, rate) => (rate == null ? "–" : `${short(rate)} rows/s`),
  }));
  plot("throughput", 280, {
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.08] } },
    series: [{ label: "after", value: (_, at) => (at == null ? "–" : `${at} s`) }, ...series],
    axes: [axis({ values: (_, marks) => marks.map((mark) => `${mark} s`) }), axis({ size: 64, values: (_, marks) => marks.map(short) })],
  }, [seconds, ...filled]);
}

function latency() {
  const percentiles = designs[0].batch_latency.percentiles.map(([percentile]) => percentile);
  const places = percentiles.map((_, index) => index);
  const milliseconds = designs.map((design) => design.batch_latency.percentiles.map(([, microseconds]) => microseconds / 1000));
  const name = (index) => (percentiles[index] === 0 ? "min" : percentiles[index] === 100 ? "max" : `p${percentiles[index]}`);
  const series = labels.map((label, index) => ({
    label,
    stroke: seriesColor(index),
    width: 2,
    points: { show: true, size: 5 },
    value: (_, time) => (time == null ? "–" : `${+time.toPrecision(3)} ms`),
  }));
  plot("latency", 300, {
    scales: { x: { time: false }, y: { distr: 3 } },
    series: [{ label: "percentile", value: (_, index) => (index == null ? "–" : name(index)) }, ...series],
    axes: [
      axis({ splits: () => places, values: () => places.map(name) }),
      axis({ size: 72, values: (_, marks) => marks.map((mark) => (mark == null || !/^[125]/.test(mark.toExponential()) ? "" : `${mark} ms`)) }),
    ],
  }, [places, ...milliseconds]);
}

// Bars over places 0, 1, 2, ..., a series for each color; `named` says which places have a name on the axis.
function bars(id, height, values, colors, names, named, top, text) {
  const places = values.map((_, index) => index);
  plot(id, height, {
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.6, values.length - 0.4] }, y: { range: [0, top * 1.12 || 1] } },
    series: [{}, ...colors.map((fill) => ({ fill, paths: uPlot.paths.bars({ size: [0.75, 90] }), points: { show: false } }))],
    axes: [
      axis({ grid: { show: false }, splits: () => places.filter(named), values: (_, marks) => marks.map((mark) => names[mark]) }),
      axis({ size: 56, values: (_, marks) => marks.map(short) }),
    ],
    hooks: {
      draw: [(drawn) => {
        if (!text) return;
        const context = drawn.ctx;
        context.save();
        context.fillStyle = color("--text");
        context.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
        context.textAlign = "center";
        places.forEach((place) => {
          context.fillText(text(values[place]), drawn.valToPos(place, "x", true), drawn.valToPos(values[place], "y", true) - 6 * devicePixelRatio);
        });
        context.restore();
      }],
    },
  }, [places, ...colors.map((_, index) => values.map((value, place) => (place % colors.length === index ? value : null)))]);
}

function regions() {
  const top = Math.max(1, ...designs.flatMap((design) => design.region_writes.regions.map((region) => region.writes)));
  designs.forEach((design, index) => {
    const writes = design.region_writes.regions.map((region) => region.writes);
    const step = Math.max(1, Math.ceil(writes.length / 16));
    const names = writes.map((_, place) => `${place + 1}`);
    bars(`regions-${index}`, 190, writes, [seriesColor(index)], names, (place) => place % step === 0, top);
  });
}

function rangeReads() {
  const colors = labels.map((_, index) => seriesColor(index));
  const times = designs.map((design) => design.range_read.median_ms);
  const scans = designs.map((design) => design.range_read.scans);
  bars("read-time", 220, times, colors, labels, () => true, Math.max(...times), (time) => `${time.toPrecision(3)} ms`);
  bars("read-scans", 220, scans, colors, labels, () => true, Math.max(...scans), (count) => `${count}`);
}

function draw() {
  throughput();
  latency();
  regions();
  rangeReads();
}

document.getElementById("started").textContent = new Date(report.started_ms).toISOString().replace("T", " ").slice(0, 16) + " UTC";
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(draw, 100);
});
