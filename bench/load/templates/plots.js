"use strict";

// Plots that the reports share. They are drawn again when the page changes between light and dark or its width changes,
// since a canvas knows neither.

// What draws a section of each kind: (report, id) => {}.
const drawers = {};

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColor = (index) => color(`--series-${(index % 8) + 1}`);
const short = (number) =>
  number >= 1e6 ? `${+(number / 1e6).toPrecision(3)} M` : number >= 1e3 ? `${+(number / 1e3).toPrecision(3)} k` : `${+number.toPrecision(3)}`;
const milliseconds = (seconds) => (seconds == null ? "–" : `${+(seconds * 1e3).toPrecision(3)} ms`);

function axis(options) {
  const line = { stroke: color("--line"), width: 1 };
  return { stroke: color("--faint"), grid: line, ticks: line, font: "12px system-ui, sans-serif", ...options };
}

function plot(id, height, options, data) {
  const place = document.getElementById(id);
  place.replaceChildren();
  if (place.clientWidth === 0) return;
  new uPlot({ width: place.clientWidth, height, ...options }, data, place);
}

// Rows a second over time: `lines` are { label, timeline }.
function throughputPlot(id, lines) {
  const rates = lines.map((line) => line.timeline.rows_per_second);
  const slots = Math.max(1, ...rates.map((rate) => rate.length));
  const slot = lines[0].timeline.slot_seconds;
  const seconds = Array.from({ length: slots }, (_, index) => index * slot);
  const filled = rates.map((rate) => seconds.map((_, index) => rate[index] ?? null));
  const series = lines.map(({ label }, index) => ({
    label,
    stroke: seriesColor(index),
    width: 2,
    points: { show: slots < 3 },
    value: (_, rate) => (rate == null ? "–" : `${short(rate)} rows/s`),
  }));
  plot(id, 300, {
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.08] } },
    series: [{ label: "after", value: (_, at) => (at == null ? "–" : `${at} s`) }, ...series],
    axes: [axis({ values: (_, marks) => marks.map((mark) => `${mark} s`) }), axis({ size: 64, values: (_, marks) => marks.map(short) })],
  }, [seconds, ...filled]);
}

// Percentiles of latencies: `lines` are { label, latency }.
function latencyPlot(id, lines) {
  const percentiles = lines[0].latency.percentiles.map(([percentile]) => percentile);
  const places = percentiles.map((_, index) => index);
  const values = lines.map((line) => line.latency.percentiles.map(([, seconds]) => seconds * 1e3 || null));
  const name = (index) => (percentiles[index] === 0 ? "min" : percentiles[index] === 100 ? "max" : `p${percentiles[index]}`);
  const series = lines.map(({ label }, index) => ({
    label,
    stroke: seriesColor(index),
    width: 2,
    points: { show: true, size: 5 },
    value: (_, time) => milliseconds(time == null ? null : time / 1e3),
  }));
  plot(id, 320, {
    scales: { x: { time: false }, y: { distr: 3 } },
    series: [{ label: "percentile", value: (_, index) => (index == null ? "–" : name(index)) }, ...series],
    axes: [
      axis({ splits: () => places, values: () => places.map(name) }),
      axis({ size: 72, values: (_, marks) => marks.map((mark) => (mark == null || !/^[125]/.test(mark.toExponential()) ? "" : `${+mark.toPrecision(3)} ms`)) }),
    ],
  }, [places, ...values]);
}

// Bars over places 0, 1, 2, ..., from zero, coloured in turn; `named` says which places have a name on the axis.
function bars(id, height, values, colors, names, named, top, text) {
  const places = values.map((_, index) => index);
  plot(id, height, {
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.6, values.length - 0.4] }, y: { range: [0, top * 1.12 || 1] } },
    series: [{}, ...colors.map((fill) => ({ fill, paths: uPlot.paths.bars({ size: [0.75, 90] }), points: { show: false } }))],
    axes: [
      axis({
        grid: { show: false },
        rotate: names.some((name) => name.length > 10) ? -25 : 0,
        size: names.some((name) => name.length > 10) ? 84 : 40,
        splits: () => places.filter(named),
        values: (_, marks) => marks.map((mark) => names[mark]),
      }),
      axis({ size: 56, values: (_, marks) => marks.map((mark) => (mark == null ? "" : short(mark))) }),
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
  }, [places, ...colors.map((_, index) => values.map((value, place) => (place % colors.length === index ? value || null : null)))]);
}

// Draws now and whenever the page changes.
function keepDrawn(draw) {
  document.querySelectorAll("time.started").forEach((started) => {
    started.textContent = new Date(+started.dataset.ms).toISOString().replace("T", " ").slice(0, 16) + " UTC";
  });
  // A plot in a closed fold has no width yet.
  document.querySelectorAll("details").forEach((fold) => fold.addEventListener("toggle", () => fold.open && draw()));
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(draw, 100);
  });
}
