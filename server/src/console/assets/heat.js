// Draws the key visualizer's maps from /api/heat: keys from top to bottom, time from left to right. Two maps
// of a page have one scale of brightness, and leave out the same columns, so that equal places are equal times.
// The address of the data and of the page that a zoom goes to come from the attributes of each .heat.
"use strict";
(() => {
  // Of each map: its greatest rate, how it is drawn again, its data, how that is shown, and its box for silence.
  const peaks = [], redraws = [], answers = [], shows = [], boxes = [];

  document.querySelectorAll(".heat").forEach((box, number) => {
    const canvas = box.querySelector("canvas");
    const [cell, scale, fold, save] = [".cell", ".scale", "input", "button"].map((part) => box.querySelector(part));

    // Viridis: its lightness rises evenly, so it can be read without seeing hues. Nothing at all is the ground.
    const GROUND = "#0d1017";
    const COLOURS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]
      .map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    // The greatest rate is 1, a hundredth of it a sixth or so: differences of a factor show wherever they are.
    const STEEPNESS = 99;
    const LEFT_MAX = 260, TOP = 6, BOTTOM = 34, RIGHT = 12;
    const REFRESH_MS = 10000;

    // Runs of at least as many columns without load are folded away.
    const SILENCE_MIN = 3;

    // The answer, and what is drawn of it.
    let received = null;
    let data = null;
    let peak = 0;
    let place = { left: 0, width: 0, height: 0 };
    let cursor = null;
    let drag = null;

    const lightness = (rate) => Math.log1p(rate / peak * STEEPNESS) / Math.log1p(STEEPNESS);

    function colour(rate) {
      if (!(rate > 0) || peak <= 0) return GROUND;
      const at = Math.min(lightness(rate), 1) * (COLOURS.length - 1);
      const low = Math.min(Math.floor(at), COLOURS.length - 2);
      const mixed = COLOURS[low].map((part, i) => Math.round(part + (COLOURS[low + 1][i] - part) * (at - low)));
      return `rgb(${mixed.join(",")})`;
    }

    function size(bytes) {
      const units = ["B", "KiB", "MiB", "GiB", "TiB"];
      let unit = 0;
      while (bytes >= 1024 && unit + 1 < units.length) { bytes /= 1024; unit += 1; }
      return `${bytes.toPrecision(3)} ${units[unit]}`;
    }
    const figure = (rate) => data.kind === "bytes" ? `${size(rate)}/s` : `${Number(rate.toPrecision(3)).toLocaleString("en")} ${data.kind}/s`;
    const keyName = (key, none) => key === "" ? none : key;
    const two = (number) => String(number).padStart(2, "0");
    function clock(ms, withDay) {
      const t = new Date(ms);
      const time = `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}:${two(t.getUTCSeconds())}`;
      return withDay ? `${t.getUTCFullYear()}-${two(t.getUTCMonth() + 1)}-${two(t.getUTCDate())} ${time}` : time;
    }
    const rateAt = (column, row) => data.rates[column * data.rows.length + row];
    const startOf = (column) => data.starts[column];

    // The data without long runs of columns in which nothing happened; `folds` has the columns before which some
    // are left out.
    function folded(all) {
      const height = all.rows.length;
      const has = (rate) => rate > 0;
      const silentIn = (map, column) => !map.rates.slice(column * map.rows.length, (column + 1) * map.rows.length).some(has);
      const silent = (column) => answers.every((map) => silentIn(map, column));
      const starts = [], rates = [], folds = [];
      for (let column = 0; column < all.columns;) {
        let end = column;
        while (fold.checked && end < all.columns && silent(end)) end += 1;
        if (end - column >= SILENCE_MIN && end - column < all.columns) {
          folds.push(starts.length);
          column = end;
          continue;
        }
        for (end = Math.max(end, column + 1); column < end; column += 1) {
          starts.push(all.from_ms + column * all.step_ms);
          rates.push(...all.rates.slice(column * height, (column + 1) * height));
        }
      }
      return { ...all, columns: starts.length, starts, rates, folds };
    }

    function shortened(context, text, width) {
      if (context.measureText(text).width <= width) return text;
      let keep = text.length;
      while (keep > 2 && context.measureText(`${text.slice(0, keep)}…`).width > width) keep -= 1;
      return `${text.slice(0, keep)}…`;
    }

    function draw() {
      if (!data) return;
      const ratio = window.devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      const style = getComputedStyle(box);
      const text = style.getPropertyValue("--text").trim(), quiet = style.getPropertyValue("--quiet").trim();
      context.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
      const namesTable = (at) => data.rows[at].table && (at === 0 || data.rows[at - 1].table !== data.rows[at].table);
      const labels = data.rows.map((row, at) => namesTable(at) ? row.table : row.start_fields || keyName(row.start, "first key"));
      const widest = labels.reduce((most, label) => Math.max(most, context.measureText(label.slice(0, 60)).width), 0);
      const left = Math.min(LEFT_MAX, width / 3, Math.ceil(widest) + 14);
      place = { left, width: Math.max(width - left - RIGHT, 10), height: Math.max(height - TOP - BOTTOM, 10) };
      const x = (column) => left + place.width * column / data.columns;
      const y = (row) => TOP + place.height * row / data.rows.length;

      context.fillStyle = GROUND;
      context.fillRect(left, TOP, place.width, place.height);
      for (let column = 0; column < data.columns; column += 1) {
        const from = Math.floor(x(column)), to = Math.floor(x(column + 1));
        for (let row = 0; row < data.rows.length; row += 1) {
          const rate = rateAt(column, row);
          if (rate > 0) {
            context.fillStyle = colour(rate);
            const top = Math.floor(y(row));
            context.fillRect(from, top, Math.max(to - from, 1), Math.max(Math.floor(y(row + 1)) - top, 1));
          }
        }
      }

      // A line between tables.
      context.fillStyle = "#ffffff";
      data.rows.forEach((row, at) => {
        if (at > 0 && row.table !== data.rows[at - 1].table) context.fillRect(left, Math.floor(y(at)), place.width, 1);
      });
      context.strokeStyle = "#ffffff";
      context.setLineDash([3, 3]);
      for (const column of data.folds) {
        context.beginPath();
        context.moveTo(Math.floor(x(column)) + 0.5, TOP);
        context.lineTo(Math.floor(x(column)) + 0.5, TOP + place.height);
        context.stroke();
      }
      context.setLineDash([]);

      context.fillStyle = text;
      context.textBaseline = "middle";
      context.textAlign = "right";
      const LABEL_STEP = 17;
      const middles = labels.map((_, row) => data.rows.length > 24 ? y(row) + 6 : (y(row) + y(row + 1)) / 2);
      const tables = middles.filter((_, row) => namesTable(row));
      let lowest = -Infinity;
      labels.forEach((label, row) => {
        const middle = middles[row];
        // A key leaves the room to the name of the next table.
        const hides = !namesTable(row) && tables.some((name) => name > middle && name - middle < LABEL_STEP);
        if (!hides && middle - lowest >= LABEL_STEP && middle <= TOP + place.height) {
          lowest = middle;
          context.fillText(shortened(context, label, left - 10), left - 6, middle);
        }
      });
      context.fillStyle = quiet;
      context.textBaseline = "top";
      const steps = Math.max(1, Math.ceil(data.columns / Math.max(1, Math.floor(place.width / 110))));
      for (let column = 0; column < data.columns; column += steps) {
        context.textAlign = column === 0 ? "left" : "center";
        const label = clock(startOf(column), false);
        if (x(column) + 35 < left + place.width) {
          context.fillRect(x(column), TOP + place.height, 1, 4);
          context.fillText(label, x(column), TOP + place.height + 7);
        }
      }
      context.textAlign = "left";
      context.fillText("UTC", left - 34, TOP + place.height + 7);
      mark(context, x, y);
    }

    // The cell under the cursor, or what is being dragged over.
    function mark(context, x, y) {
      const area = drag ? selected() : cursor && { columns: [cursor.column, cursor.column + 1], rows: [cursor.row, cursor.row + 1] };
      if (!area) return;
      const box = [x(area.columns[0]), y(area.rows[0]), x(area.columns[1]) - x(area.columns[0]), y(area.rows[1]) - y(area.rows[0])];
      context.lineWidth = 3;
      context.strokeStyle = "#000000";
      context.strokeRect(...box);
      context.lineWidth = 1.5;
      context.strokeStyle = "#ffffff";
      context.strokeRect(...box);
    }

    function selected() {
      const order = (a, b) => [Math.min(a, b), Math.max(a, b) + 1];
      return { columns: order(drag.column, cursor.column), rows: order(drag.row, cursor.row) };
    }

    function drawScale() {
      scale.replaceChildren();
      const low = document.createElement("span"), high = document.createElement("span"), bar = document.createElement("canvas");
      bar.width = 224;
      bar.height = 1;
      const context = bar.getContext("2d");
      for (let at = 0; at < bar.width; at += 1) {
        const share = (at + 1) / bar.width;
        context.fillStyle = peak > 0 ? colour(Math.expm1(share * Math.log1p(STEEPNESS)) / STEEPNESS * peak) : GROUND;
        context.fillRect(at, 0, 1, 1);
      }
      low.textContent = `0 ${data.kind}`;
      high.textContent = peak > 0 ? `${figure(peak)} for each row of the map` : "nothing in this time";
      scale.append(low, bar, high);
    }

    function tell() {
      if (!data || !cursor) { cell.textContent = ""; return; }
      const row = data.rows[cursor.row];
      const regions = row.regions > 1 ? `region ${row.region} and ${row.regions - 1} more` : `region ${row.region}`;
      cell.textContent = `${figure(rateAt(cursor.column, cursor.row))} at ${clock(startOf(cursor.column), true)} UTC for ` +
        `${data.step_ms / 1000} s, keys from ${keyName(row.start, "the first")}${row.start_fields ? ` (${row.start_fields})` : ""} up to ${keyName(row.end, "the last")}, ${row.table ? `table ${row.table}, ` : ""}${regions}`;
    }

    function at(event) {
      const bounds = canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - bounds.left - place.left) / place.width * data.columns);
      const row = Math.floor((event.clientY - bounds.top - TOP) / place.height * data.rows.length);
      const inside = column >= 0 && column < data.columns && row >= 0 && row < data.rows.length;
      const clamp = (number, most) => Math.min(Math.max(number, 0), most - 1);
      return { column: clamp(column, data.columns), row: clamp(row, data.rows.length), inside };
    }

    // Goes to the page of these rows and, if there are several columns, of these times.
    function zoom(area) {
      const address = new URL(box.dataset.page, location.href);
      const first = data.rows[area.rows[0]], last = data.rows[area.rows[1] - 1];
      // Over several tables the first one is shown, whole.
      const whole = first.table !== last.table || (area.rows[0] === 0 && area.rows[1] === data.rows.length);
      if (first.table) address.searchParams.set("table", first.table);
      const set = (name, value) => { if (value !== "") address.searchParams.set(name, value); };
      set("start", whole ? data.start : first.start);
      set("end", whole ? data.end : last.end);
      const regions = data.rows.slice(...area.rows).reduce((sum, row) => sum + row.regions, 0);
      if (!whole && (data.axis === "keys" || regions < 4)) set("axis", "keys");
      if (area.columns[1] - area.columns[0] > 1) {
        set("from", startOf(area.columns[0]));
        set("to", startOf(area.columns[1] - 1) + data.step_ms);
      } else {
        const now = new URL(location.href).searchParams;
        for (const name of ["from", "to"]) set(name, now.get(name) || "");
      }
      location.assign(address);
    }

    canvas.addEventListener("pointermove", (event) => {
      if (!data) return;
      const found = at(event);
      cursor = found.inside || drag ? found : null;
      draw();
      tell();
    });
    canvas.addEventListener("pointerleave", () => { if (!drag && document.activeElement !== canvas) { cursor = null; draw(); tell(); } });
    canvas.addEventListener("pointerdown", (event) => {
      if (!data || event.button !== 0) return;
      cursor = at(event);
      if (!cursor.inside) return;
      drag = cursor;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!drag) return;
      cursor = at(event);
      const area = selected();
      drag = null;
      if (area.columns[1] - area.columns[0] > 1 || area.rows[1] - area.rows[0] > 1) zoom(area); else { draw(); tell(); }
    });
    canvas.addEventListener("pointercancel", () => { drag = null; draw(); });
    canvas.addEventListener("focus", () => {
      if (data && !cursor && canvas.matches(":focus-visible")) { cursor = hottest(); draw(); tell(); }
    });
    canvas.addEventListener("keydown", (event) => {
      if (!data) return;
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10] };
      const move = moves[event.key];
      if (move) {
        const from = cursor || hottest();
        if (event.shiftKey && !drag) drag = from;
        if (!event.shiftKey) drag = null;
        const clamp = (number, most) => Math.min(Math.max(number, 0), most - 1);
        cursor = { column: clamp(from.column + move[0], data.columns), row: clamp(from.row + move[1], data.rows.length) };
      } else if (event.key === "Enter" && cursor) {
        zoom(drag ? selected() : { columns: [cursor.column, cursor.column + 1], rows: [cursor.row, cursor.row + 1] });
      } else if (event.key === "Escape") {
        if (drag) drag = null; else history.back();
      } else {
        return;
      }
      event.preventDefault();
      draw();
      tell();
    });

    function hottest() {
      let best = 0;
      data.rates.forEach((rate, index) => { if (rate > data.rates[best]) best = index; });
      return { column: Math.floor(best / data.rows.length), row: best % data.rows.length };
    }

    async function load() {
      try {
        const answer = await fetch(box.dataset.address);
        if (!answer.ok) throw new Error(await answer.text());
        received = answers[number] = await answer.json();
      } catch (error) {
        cell.textContent = `The map cannot be loaded: ${error.message}`;
        return;
      }
      shows.forEach((shown) => shown());
      box.dataset.loaded = "true";
    }

    // Draws what was received, with or without the times in which nothing happened.
    function show() {
      if (!received) return;
      data = folded(received);
      peaks[number] = data.rates.reduce((most, rate) => Math.max(most, rate), 0);
      if (cursor) {
        cursor.column = Math.min(cursor.column, data.columns - 1);
        cursor.row = Math.min(cursor.row, data.rows.length - 1);
      }
      redraws.forEach((redraw) => redraw());
      tell();
    }
    redraws[number] = () => {
      if (!data) return;
      peak = Math.max(...peaks.filter((own) => own !== undefined));
      drawScale();
      draw();
    };

    shows[number] = show;
    boxes[number] = fold;
    fold.addEventListener("change", () => {
      boxes.forEach((other) => { other.checked = fold.checked; });
      shows.forEach((shown) => shown());
    });
    save.addEventListener("click", () => {
      if (!data) return;
      // The canvas is transparent where the page shows through.
      const picture = document.createElement("canvas");
      picture.width = canvas.width;
      picture.height = canvas.height;
      const context = picture.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, picture.width, picture.height);
      context.drawImage(canvas, 0, 0);
      picture.toBlob((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = `${data.table.replace(":", "-") || "tables"}-${data.kind}-${new Date(data.now_ms).toISOString().slice(0, 19).replaceAll(":", "")}.png`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    });

    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    load();
    if (box.dataset.follow === "true") {
      setInterval(() => { if (!document.hidden && !drag) load(); }, REFRESH_MS);
    }
  });
})();
