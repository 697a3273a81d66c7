// A chart: depth as an area above, rates as lines below, one time axis. Points are [milliseconds, pending, in, out], flags
// [milliseconds, kind, text, address], expected ranges of hours [milliseconds, low, high], hours outside [milliseconds,
// rate, text]. Drawn as SVG with the page's own colours, so that it follows the theme. A gap in
// time stays a gap. Dragging over it chooses a window, which the address keeps.

import { tableOf } from "./chart_table.js";

const SHORTEST = 60000; // milliseconds a chosen window has at least
const STALE = 60000; // after which a long window asks for its points again
const FLAG_REACH = 8; // pixels
const TABLE_ROWS = 60;
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 66, right: 14, top: 22, bottom: 24, between: 34 };
const DEPTH_SHARE = 0.58;
const HOUR = 3600000;
const DAY = 86400000;
const LABEL = 62; // pixels of a label of the time axis, with the room beside it

// By whose clock times are told: a user's choice, which the page carries.
const timeZone = document.documentElement.dataset.zone || "UTC";
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone });
const clockWithSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone });

const named = new Intl.DateTimeFormat("en-GB", { timeZone, timeZoneName: "short" });
const plain = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });

// Milliseconds by which the clock of the zone is ahead of UTC at a moment.
function aheadOfUtc(at) {
  return Date.parse(`${plain.format(at).replace(" ", "T")}Z`) - Math.floor(at / 1000) * 1000;
}

function rateText(value) {
  return value >= 1000 ? grouped.format(value) : decimal.format(value);
}

// The next round number at or above, whose half is round, too: axes are labelled at 0, the half and the whole.
function ceiling(value, least) {
  if (value <= least) return least;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((each) => each >= value);
}

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

// Milliseconds between two labels of the time axis, so that as many have room as there are.
function tickOf(span, most) {
  const minute = 60000;
  return [1 / 12, 1 / 6, 1 / 4, 1 / 2, 1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 7200, 10080].map((minutes) => minutes * minute)
    .find((step) => span / step <= most) ?? 20160 * minute;
}

class Chart {
  constructor(host) {
    this.host = host;
    this.svg = element("svg", { "aria-hidden": "true" }, host);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    host.append(this.tip);
    this.take(JSON.parse(document.getElementById(host.dataset.source).textContent));
    this.listen();
    new ResizeObserver(() => this.draw()).observe(host);
    this.draw();
  }

  take(chart) {
    Object.assign(this, { marks: chart.marks, events: chart.events, seconds: chart.seconds, isLive: chart.live, gap: chart.gap,
      thin: chart.thin, keeps: chart.keeps, expected: chart.expected, outside: chart.outside, url: chart.url, start: chart.start, end: chart.end });
    this.taken = Date.now();
    this.host.setAttribute("aria-label", chart.summary);
    this.table();
  }

  listen() {
    const { host } = this;
    host.addEventListener("pointermove", (event) => { this.pointer = this.within(event); this.draw(); });
    host.addEventListener("pointerleave", () => { this.pointer = null; if (this.brushed == null) this.draw(); });
    host.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.brushed = this.within(event);
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointerup", (event) => this.choose(this.within(event)));
    host.addEventListener("pointercancel", () => { this.brushed = null; this.draw(); });
    host.closest("[data-topic]")?.addEventListener("live:cells", (event) => this.add(event.detail.mark));
    document.addEventListener("live:back", () => this.again());
    host.closest("section").querySelector("details.chart-table")?.addEventListener("toggle", () => this.table());
  }

  within(event) {
    return event.clientX - this.host.getBoundingClientRect().left - 6;
  }

  // A window chosen by dragging: the address says it, so that it can be sent to somebody, and every page understands it.
  choose(to) {
    const from = this.brushed;
    this.brushed = null;
    if (from == null) return;
    if (Math.abs(to - from) < 6) return this.open(to);
    const [start, end] = [Math.min(from, to), Math.max(from, to)].map((x) => this.time(x));
    const middle = (start + end) / 2;
    const half = Math.max(end - start, SHORTEST) / 2;
    const address = new URL(location.href);
    address.searchParams.delete("window");
    address.searchParams.set("from", Math.floor((middle - half) / 1000));
    address.searchParams.set("to", Math.min(Math.floor(Date.now() / 1000), Math.ceil((middle + half) / 1000)));
    location.assign(address);
  }

  open(x) {
    const flag = this.flagAt(x);
    if (flag?.[3]) location.assign(flag[3]);
    this.draw();
  }

  async again() {
    if (this.asking) return;
    this.asking = true;
    try {
      const answer = await fetch(this.url, { headers: { Accept: "application/json" } });
      if (answer.ok) this.take(await answer.json());
      this.draw();
    } finally {
      this.asking = false;
    }
  }

  add(mark) {
    if (!mark || !this.isLive) return;
    const last = this.marks[this.marks.length - 1];
    if (last && mark[0] <= last[0]) return;
    // No two stand closer than can be seen: the latest takes the place of the one before.
    const before = this.marks[this.marks.length - 2];
    if (before && mark[0] - before[0] < this.thin) this.marks.pop();
    this.marks.push(mark);
    this.marks = this.marks.filter(([at]) => mark[0] - at <= this.seconds * 1000);
    if (Date.now() - this.taken > STALE && this.seconds > 900) this.again();
    this.draw();
  }

  // -- where things are

  time(x) {
    const { from, to, left, right } = this.scale;
    return from + ((x - left) / (right - left)) * (to - from);
  }

  flagAt(x) {
    const near = this.events.filter(([at]) => Math.abs(this.x(at) - x) <= FLAG_REACH);
    return near.sort((one, other) => Math.abs(this.x(one[0]) - x) - Math.abs(this.x(other[0]) - x))[0];
  }

  x(at) {
    const { from, to, left, right } = this.scale;
    return left + ((at - from) / (to - from)) * (right - left);
  }

  // -- drawing

  draw() {
    const width = this.host.clientWidth - 12;
    const height = this.host.clientHeight - 8;
    if (width < 80) return;
    const last = this.marks.length ? this.marks[this.marks.length - 1][0] : 0;
    const to = this.isLive ? Math.max(last, this.end) : this.end;
    const from = this.isLive ? to - this.seconds * 1000 : this.start;
    this.scale = { from, to, left: MARGIN.left, right: width - MARGIN.right };
    const inner = height - MARGIN.top - MARGIN.bottom - MARGIN.between;
    const depth = this.keeps ? { top: MARGIN.top, height: inner * DEPTH_SHARE, max: ceiling(this.largest(1), 10) } : null;
    const rates = { top: MARGIN.top + (depth ? depth.height + MARGIN.between : 0), height: depth ? inner * (1 - DEPTH_SHARE) : inner + MARGIN.between, max: ceiling(Math.max(this.largest(2), this.largest(3), this.highestExpected()), 10) };
    const y = (panel, value) => panel.top + panel.height * (1 - value / panel.max);

    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = element("clipPath", { id: `${this.host.dataset.source}-clip` }, this.svg);
    element("rect", { x: MARGIN.left, y: 0, width: this.scale.right - MARGIN.left, height }, clip);
    if (depth) this.axis(depth, y, width, "messages", grouped.format);
    this.axis(rates, y, width, "msg/s", grouped.format);
    this.times(height);
    if (!this.marks.length) {
      const none = element("text", { class: "none", x: width / 2, y: MARGIN.top + inner * DEPTH_SHARE / 2 }, this.svg);
      none.textContent = "No data in this time range";
    }
    this.band(rates, y);
    // Lines lead to the last point, which counts a step that may end after the time range.
    this.lines = element("g", { "clip-path": `url(#${clip.id})` }, this.svg);
    for (const run of this.runs()) this.stretch(run, depth, rates, y);
    this.hoursOutside(rates, y);
    for (const event of this.events) this.flag(event, height);
    if (this.brushed != null && this.pointer != null) {
      const [left, right] = [this.brushed, this.pointer].sort((one, other) => one - other);
      element("rect", { class: "brush", x: left, y: MARGIN.top, width: right - left, height: height - MARGIN.top - MARGIN.bottom }, this.svg);
    }
    this.cross(width, height);
    const quiet = this.host.closest("section").querySelector("[data-chart-quiet]");
    if (quiet) quiet.hidden = this.largest(2) > 0 || this.largest(3) > 0;
  }

  times(height) {
    const { from, to } = this.scale;
    const tick = tickOf(to - from, Math.min(8, (this.scale.right - this.scale.left) / LABEL));
    const ahead = aheadOfUtc(from);
    for (let at = Math.ceil((from + ahead) / tick) * tick - ahead; at <= to; at += tick) {
      const label = element("text", { x: this.x(at), y: height - 6, "text-anchor": "middle" }, this.svg);
      label.textContent = (tick < 60000 ? clockWithSeconds : tick < DAY ? clock : date).format(at);
    }
    const zone = element("text", { class: "zone", x: 12, y: height - 6 }, this.svg);
    zone.textContent = named.formatToParts(from).find((part) => part.type === "timeZoneName").value;
  }

  stretch(run, depth, rates, y) {
    const x = (mark) => this.x(mark[0]).toFixed(1);
    if (depth) {
      const line = run.map((mark) => `${x(mark)},${y(depth, mark[1]).toFixed(1)}`).join(" ");
      const floor = depth.top + depth.height;
      element("polygon", { class: "area", points: `${x(run[0])},${floor} ${line} ${x(run[run.length - 1])},${floor}` }, this.lines);
      element("polyline", { class: "line line-depth", points: line }, this.lines);
    }
    for (const [index, name] of [[2, "in"], [3, "out"]]) {
      const points = run.map((mark) => `${x(mark)},${y(rates, mark[index]).toFixed(1)}`).join(" ");
      element("polyline", { class: `line line-${name}`, points }, this.lines);
    }
  }

  // The expected range of each hour, as steps; what lies outside the time range is cut off.
  band(rates, y) {
    const { from, to } = this.scale;
    for (const [start, low, high] of this.expected) {
      const [left, right] = [Math.max(start, from), Math.min(start + HOUR, to)];
      if (right <= left) continue;
      const [top, bottom] = [y(rates, high), y(rates, low)];
      element("rect", { class: "expected", x: this.x(left).toFixed(1), width: (this.x(right) - this.x(left)).toFixed(1),
        y: top.toFixed(1), height: Math.max(1, bottom - top).toFixed(1) }, this.svg);
    }
  }

  hoursOutside(rates, y) {
    const { from, to } = this.scale;
    for (const [start, rate] of this.outside) {
      const middle = start + HOUR / 2;
      if (middle < from || middle > to) continue;
      element("circle", { class: "outside", cx: this.x(middle).toFixed(1), cy: y(rates, rate).toFixed(1), r: 4 }, this.svg);
    }
  }

  // The entry of an hour that a time lies in.
  hourAt(hours, time) {
    return hours.find(([start]) => start <= time && time < start + HOUR);
  }

  highestExpected() {
    const { from, to } = this.scale;
    const shown = this.expected.filter(([start]) => start + HOUR > from && start < to);
    return Math.max(0, ...shown.map(([, , high]) => high), ...this.outside.map(([, rate]) => rate));
  }

  flag([at, kind], height) {
    const { from, to } = this.scale;
    if (at < from || at > to) return;
    const x = Math.round(this.x(at)) + 0.5;
    const group = element("g", { class: `flag flag-${kind}` }, this.svg);
    element("line", { x1: x, x2: x, y1: 6, y2: height - MARGIN.bottom }, group);
    element("path", { d: `M${x} 4h9l-3 4 3 4h-9z` }, group);
  }

  axis(panel, y, width, unit, format) {
    for (const share of [0, 0.5, 1]) {
      const value = panel.max * share;
      const at = Math.round(y(panel, value));
      element("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }, this.svg);
      const label = element("text", { x: MARGIN.left - 10, y: at + 4, "text-anchor": "end" }, this.svg);
      label.textContent = format(value);
    }
    // Where the heading begins; flags stand above the panel, from its left edge on.
    const name = element("text", { x: 12, y: panel.top - 10 }, this.svg);
    name.textContent = unit;
  }

  cross(width, height) {
    const flag = this.pointer != null ? this.flagAt(this.pointer) : null;
    const isInside = this.pointer != null && (this.marks.length > 0 || flag);
    this.tip.hidden = !isInside;
    if (!isInside) return;
    const nearest = this.marks.reduce((best, mark) => (!best || Math.abs(this.x(mark[0]) - this.pointer) < Math.abs(this.x(best[0]) - this.pointer) ? mark : best), null);
    const time = flag ? flag[0] : nearest[0];
    const at = this.x(time);
    element("line", { class: "cross", x1: at, x2: at, y1: MARGIN.top, y2: height - MARGIN.bottom }, this.svg);
    this.tip.replaceChildren();
    const said = [[null, (this.seconds > 3600 ? day : clockWithSeconds).format(time)]];
    if (flag) said.push(["flag", flag[2]]);
    else {
      if (this.keeps) said.push(["depth", `${grouped.format(nearest[1])} messages`]);
      said.push(["in", `${rateText(nearest[2])} msg/s enqueued`], ["out", `${rateText(nearest[3])} msg/s dequeued`]);
      const range = this.hourAt(this.expected, time);
      if (range) said.push(["expected", `${rateText(range[1])} to ${rateText(range[2])} msg/s expected in this hour`]);
      const outside = this.hourAt(this.outside, time);
      if (outside) said.push(["outside", outside[2]]);
    }
    for (const [key, text] of said) {
      const line = document.createElement("div");
      if (key === "flag") line.className = "flag-text";
      else if (key) {
        const swatch = document.createElement("i");
        swatch.className = `legend-key legend-key-${key}`;
        line.append(swatch, " ");
      }
      line.append(text);
      this.tip.append(line);
    }
    this.tip.style.left = `${at > width / 2 ? at - this.tip.offsetWidth - 8 : at + 18}px`;
  }

  largest(index) {
    return this.marks.reduce((most, mark) => Math.max(most, mark[index]), 0);
  }

  // The points in stretches without a gap; one that stands alone twice, so that it is drawn as a dot.
  runs() {
    const stretches = [];
    let last = -Infinity;
    for (const mark of this.marks) {
      if (mark[0] - last > this.gap) stretches.push([]);
      stretches[stretches.length - 1].push(mark);
      last = mark[0];
    }
    return stretches.map((run) => (run.length > 1 ? run : [run[0], run[0]]));
  }

  // -- the same as a table, made when somebody opens it

  table() {
    const details = this.host.closest("section").querySelector("details.chart-table");
    if (!details?.open) return;
    const step = Math.max(1, Math.ceil(this.marks.length / TABLE_ROWS));
    const rows = this.marks.filter((_, place) => place % step === 0 || place === this.marks.length - 1).reverse();
    const exact = this.seconds > 3600 ? day : clockWithSeconds;
    const heads = ["Time", ...(this.keeps ? ["Depth"] : []), "Enqueue rate, msg/s", this.keeps ? "Dequeue rate, msg/s" : "Dispatch rate, msg/s"];
    const numbers = ([, pending, ...rates]) => [...(this.keeps ? [grouped.format(pending)] : []), ...rates.map(rateText)];
    const shown = [tableOf(heads, rows.map((mark) => [exact.format(mark[0]), ...numbers(mark)]))];
    if (this.outside.length) {
      const hours = this.outside.map(([at, , text]) => [day.format(at), text]);
      shown.unshift(tableOf(["Hour", "Outside the expected range"], hours.reverse()));
      shown[0].classList.add("chart-events");
    }
    if (this.events.length) {
      const events = this.events.map(([at, , text, url]) => [day.format(at), { text, url }]);
      shown.unshift(tableOf(["Time", "Event"], events.reverse()));
      shown[0].classList.add("chart-events");
    }
    details.querySelector("[data-chart-table]").replaceChildren(...shown);
  }
}

export function startCharts() {
  for (const host of document.querySelectorAll("[data-chart]:not([data-started])")) {
    host.dataset.started = "";
    new Chart(host);
  }
}
