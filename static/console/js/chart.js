// A live chart: depth as an area above, rates as lines below, one time axis. Points are [milliseconds, pending, in, out].
// Drawn as SVG with the page's own colours, so that it follows the theme. A gap in time stays a gap.

const PAST = 300000;
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 56, right: 14, top: 22, bottom: 24, between: 34 };
const DEPTH_SHARE = 0.58;

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function rateText(value) {
  return value >= 1000 ? grouped.format(value) : decimal.format(value);
}

// The next round number at or above: 1, 2, 5 times a power of ten.
function ceiling(value, least) {
  if (value <= least) return least;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((each) => each >= value);
}

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

class LiveChart {
  constructor(host) {
    this.host = host;
    this.marks = JSON.parse(document.getElementById(host.dataset.source).textContent);
    this.gap = Number(host.dataset.gap ?? 4000);
    this.svg = element("svg", { "aria-hidden": "true" }, host);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    host.append(this.tip);
    host.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; this.draw(); });
    host.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
    host.closest("[data-topic]").addEventListener("live:cells", (event) => this.add(event.detail.mark));
    new ResizeObserver(() => this.draw()).observe(host);
    this.draw();
  }

  add(mark) {
    if (!mark) return;
    this.marks.push(mark);
    this.marks = this.marks.filter(([at]) => mark[0] - at <= PAST);
    this.draw();
  }

  draw() {
    const width = this.host.clientWidth - 12;
    const height = this.host.clientHeight - 8;
    if (width < 80) return;
    const now = this.marks.length ? this.marks[this.marks.length - 1][0] : Date.now();
    const inner = height - MARGIN.top - MARGIN.bottom - MARGIN.between;
    const x = (at) => MARGIN.left + (width - MARGIN.left - MARGIN.right) * (1 - (now - at) / PAST);
    const depth = { top: MARGIN.top, height: inner * DEPTH_SHARE, max: ceiling(this.largest(1), 10) };
    const rates = { top: MARGIN.top + depth.height + MARGIN.between, height: inner * (1 - DEPTH_SHARE), max: ceiling(Math.max(this.largest(2), this.largest(3)), 10) };
    const y = (panel, value) => panel.top + panel.height * (1 - value / panel.max);

    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.axis(depth, y, width, "messages", grouped.format);
    this.axis(rates, y, width, "msg/s", grouped.format);
    for (let at = Math.ceil((now - PAST) / 60000) * 60000; at <= now; at += 60000) {
      const label = element("text", { x: x(at), y: height - 6, "text-anchor": "middle" }, this.svg);
      label.textContent = clock.format(at);
    }
    for (const run of this.runs()) {
      const line = run.map((mark) => `${x(mark[0]).toFixed(1)},${y(depth, mark[1]).toFixed(1)}`).join(" ");
      const floor = depth.top + depth.height;
      element("polygon", { class: "area", points: `${x(run[0][0])},${floor} ${line} ${x(run[run.length - 1][0])},${floor}` }, this.svg);
      element("polyline", { class: "line line-depth", points: line }, this.svg);
      for (const [index, name] of [[2, "in"], [3, "out"]]) {
        const points = run.map((mark) => `${x(mark[0]).toFixed(1)},${y(rates, mark[index]).toFixed(1)}`).join(" ");
        element("polyline", { class: `line line-${name}`, points }, this.svg);
      }
    }
    this.cross(x, width, height);
  }

  axis(panel, y, width, unit, format) {
    for (const share of [0, 0.5, 1]) {
      const value = panel.max * share;
      const at = Math.round(y(panel, value));
      element("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }, this.svg);
      const label = element("text", { x: MARGIN.left - 10, y: at + 4, "text-anchor": "end" }, this.svg);
      label.textContent = format(value);
    }
    const name = element("text", { x: MARGIN.left, y: panel.top - 7 }, this.svg);
    name.textContent = unit;
  }

  cross(x, width, height) {
    const isInside = this.pointer != null && this.marks.length > 0;
    this.tip.hidden = !isInside;
    if (!isInside) return;
    const nearest = this.marks.reduce((best, mark) => (Math.abs(x(mark[0]) - this.pointer) < Math.abs(x(best[0]) - this.pointer) ? mark : best));
    const at = x(nearest[0]);
    element("line", { class: "cross", x1: at, x2: at, y1: MARGIN.top, y2: height - MARGIN.bottom }, this.svg);
    const [time, pending, incoming, outgoing] = nearest;
    this.tip.replaceChildren();
    for (const [key, text] of [[null, clockWithSeconds.format(time)], ["depth", `${grouped.format(pending)} pending`], ["in", `${rateText(incoming)} in`], ["out", `${rateText(outgoing)} out`]]) {
      const line = document.createElement("div");
      if (key) {
        const swatch = document.createElement("i");
        swatch.className = `key key-${key}`;
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

  // The points in stretches without a gap.
  runs() {
    const stretches = [];
    let last = -Infinity;
    for (const mark of this.marks) {
      if (mark[0] - last > this.gap) stretches.push([]);
      stretches[stretches.length - 1].push(mark);
      last = mark[0];
    }
    return stretches;
  }
}

export function startCharts() {
  for (const host of document.querySelectorAll("[data-chart]:not([data-started])")) {
    host.dataset.started = "";
    new LiveChart(host);
  }
}
