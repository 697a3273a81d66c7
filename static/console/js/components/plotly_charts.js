// Plotly figures in the page's own colours and type. The server sends figure JSON; nothing of it is executed. The legend
// is the page's own: a list that wraps, above the plot, however narrow that is; its entries show and hide what they name.

import { tableOf } from "./chart_table.js";

function token(name) {
  // A custom property that holds light-dark() is resolved only where it is used.
  const probe = document.createElement("i");
  probe.className = `probe probe-${name}`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

const HEIGHT = 320;
const NARROW = 560; // pixels of a plot: below, names of bars stand above their bars, and axes have fewer labels
const SERIES = 8;

// The server names its colours in one order; each has a shade for every theme.
function shades(colorway) {
  return Object.fromEntries(colorway.slice(0, SERIES).map((colour, place) => [colour.toLowerCase(), token(`series-${place + 1}`)]));
}

// A queue is known by its bare name.
const called = (text) => text?.replace(/^queue:\/\//, "");

function shaded(trace, place, shadeOf, colorway) {
  const colour = trace.line?.color ?? trace.marker?.color ?? colorway[place % colorway.length];
  const shade = shadeOf[String(colour).toLowerCase()] ?? colour;
  const opacity = trace.stackgroup ? 0.42 : trace.fill === "tonexty" ? 0.22 : 0;
  const filled = opacity ? { fillcolor: shade.replace("rgb(", "rgba(").replace(")", `, ${opacity})`) } : {};
  // Earlier results ask for bold text, an inline style that the page's policy forbids, and for a box of its own for the
  // name, which Plotly draws white in dark themes, too.
  const hovertemplate = trace.hovertemplate?.replace(/<\/?b>/g, "").replace("<extra>%{fullData.name}</extra>", "<br>%{fullData.name}<extra></extra>");
  return { ...trace, ...filled, ...(hovertemplate && { hovertemplate }), name: called(trace.name), line: { ...trace.line, color: shade }, marker: { ...trace.marker, color: shade } };
}

// -- axes of time: the server says which marks there can be and how they read; how many have room is known here

const asUtc = (text) => Date.parse(`${String(text).replace(" ", "T")}Z`);

function rangeOf(data) {
  const moments = data.flatMap((trace) => [trace.x?.[0], trace.x?.[trace.x.length - 1]]).filter(Boolean).map(asUtc);
  return [Math.min(...moments), Math.max(...moments)];
}

function marks([from, to], time, isNarrow) {
  const most = time.most[isNarrow ? 1 : 0];
  const [seconds, form] = time.steps.find(([step]) => (to - from) / 1000 / step <= most) ?? time.steps[time.steps.length - 1];
  return { tickmode: "linear", tick0: ORIGIN, dtick: seconds * 1000, tickformat: `${form}\n${seconds < 86400 ? "%-d %b" : "%Y"}` };
}

function themed(data, layout, isNarrow, time) {
  const [ink, soft, line, raised] = ["ink", "soft", "line", "raised"].map(token);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft };
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: "rgba(0,0,0,0)", automargin: true };
  const axes = {};
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((each) => /^[xy]axis\d*$/.test(each))])) {
    const said = layout[name] ?? {};
    axes[name] = { ...axis, ...(isNarrow && { nticks: 5 }), ...said, title: { ...said.title, font: { ...font, size: 12 }, standoff: 10 } };
    if (said.type === "date") Object.assign(axes[name], { showgrid: false, nticks: 0, ...marks(rangeOf(data), time, isNarrow) });
    if (said.type === "date") axes[name].title = { text: time.label, font: { ...font, size: 12 }, standoff: 6 };
    if (said.type !== "date" && !said.tickvals) axes[name].separatethousands = true;
  }
  return {
    height: HEIGHT,
    ...layout,
    ...axes,
    font,
    showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: raised, bordercolor: line, font: { ...font, color: ink }, align: "left", namelength: -1 },
    margin: { l: isNarrow ? 12 : 60, r: 16, t: 8, b: 40, ...layout.margin },
  };
}

// Plotly draws times as their texts say them: they are told by the clock of the chart, its reader's or its report's.
const clocks = new Map();

function clockOf(timeZone) {
  if (!clocks.has(timeZone)) clocks.set(timeZone, new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }));
  return clocks.get(timeZone);
}

const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

function inZone(value, timeZone) {
  if (typeof value !== "string" || !MOMENT.test(value)) return value;
  const isExact = /(Z|[+-]\d\d:?\d\d)$/.test(value);
  return clockOf(timeZone).format(Date.parse(isExact ? value : `${value.replace(" ", "T")}Z`));
}

function zoned(data, timeZone) {
  return data.map((trace) => (Array.isArray(trace.x) ? { ...trace, x: trace.x.map((each) => inZone(each, timeZone)) } : trace));
}

// On a narrow page names stand above their bars, where they have the whole width.
function stood(data, layout) {
  if (data[0]?.type !== "bar" || data[0].orientation !== "h") return layout;
  const names = [...new Set(data.flatMap((trace) => trace.y))];
  const rows = layout.barmode === "stack" ? 1 : data.length;
  const band = 22 + Math.max(14, 9 * rows) + 8;
  const height = names.length * band + 48;
  return {
    ...layout,
    height,
    bargap: (band - Math.max(14, 9 * rows)) / band,
    margin: { ...layout.margin, l: 12 },
    yaxis: { ...layout.yaxis, showticklabels: false, automargin: false },
    annotations: names.map((name) => ({ xref: "paper", x: 0, xanchor: "left", y: name, yanchor: "bottom", yshift: Math.max(14, 9 * rows) / 2 + 1,
      text: name, showarrow: false, align: "left", font: { size: 11 } })),
  };
}

const ORIGIN = "2001-01-01"; // a Monday, from which marks are counted

const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false };

// -- the legend: an entry for each name; what is drawn twice under one name (before and after) goes together

function legend(host, data) {
  const list = document.createElement("ul");
  list.className = "legend figure-legend";
  const groups = new Map();
  data.forEach((trace, place) => {
    if (trace.showlegend === false || !trace.name) return;
    const key = trace.legendgroup ?? trace.name;
    groups.set(key, [...(groups.get(key) ?? []), place]);
  });
  if (groups.size < 2) return list;
  for (const [name, places] of groups) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const swatch = document.createElement("i");
    const last = data[places[places.length - 1]];
    swatch.className = places.length === 1 && last.line?.dash && last.line.dash !== "solid" ? "legend-key legend-key-dotted" : "legend-key";
    swatch.style.color = last.line?.color ?? last.marker?.color;
    button.append(swatch, called(name));
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!isShown));
      window.Plotly.restyle(host, { visible: isShown ? "legendonly" : true }, places);
    });
    const item = document.createElement("li");
    item.append(button);
    list.append(item);
  }
  return list;
}

// -- where a mark leads: the page of what it is about, at the same window

const isLying = (trace) => trace.type === "bar" && trace.orientation === "h";

function addressOf(opens, ...names) {
  return names.map((name) => opens[name]).find((url) => url) ?? opens[""];
}

function follow(host, opens) {
  host.removeAllListeners("plotly_click");
  host.on("plotly_click", ({ points: [mark] }) => {
    const trace = host.data[mark.curveNumber];
    const url = isLying(trace) ? addressOf(opens, mark.y, trace.name) : addressOf(opens, trace.legendgroup, trace.name);
    if (url) location.assign(url);
  });
  host.classList.toggle("leads", Object.keys(opens).length > 0);
}

// -- the same as a table

const decimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

function tabulated(data, opens, time) {
  const lies = isLying(data[0] ?? {});
  const along = [...new Set(data.flatMap((trace) => [...((lies ? trace.y : trace.x) ?? [])]))];
  const columns = data.map((trace) => {
    const values = lies ? trace.x : trace.y;
    const said = new Map((lies ? trace.y : trace.x).map((key, place) => [key, trace.customdata?.[place] ?? values[place]]));
    return (key) => { const value = said.get(key); return typeof value === "number" ? decimal.format(value) : value ?? "–"; };
  });
  const headed = (trace) => ({ text: called(trace.name) ?? "", url: lies ? "" : opens[trace.legendgroup] ?? opens[trace.name] });
  const row = (key) => [{ text: lies ? key : inZone(key, time.zone), url: lies ? opens[key] : "" }, ...columns.map((read) => read(key))];
  return tableOf([lies ? "" : `Time, ${time.zone}`, ...data.map(headed)], along.map(row));
}

for (const details of document.querySelectorAll("details.chart-table")) {
  const host = details.querySelector("[data-plot-table]");
  if (!host) continue;
  details.addEventListener("toggle", () => {
    if (!details.open || host.hasChildNodes()) return;
    const { figure, opens, time } = JSON.parse(document.getElementById(host.dataset.plotTable).textContent);
    host.append(tabulated(figure.data, opens, time));
  });
}

// -- zoom: marks are chosen anew for what is shown, there is a way back, and what is shown can be analysed. The address
// keeps the time range, so that a link or a reload shows the same.

// Milliseconds since the epoch of a time as the axis has it: a text of the zone's clock.
function instantOf(text, timeZone) {
  const local = asUtc(String(text).length === 10 ? `${text}T00:00` : text);
  const ahead = (at) => asUtc(clockOf(timeZone).format(at)) - Math.floor(at / 1000) * 1000;
  return local - ahead(local - ahead(local));
}

function keepInAddress(ends) {
  const address = new URL(location.href);
  for (const [place, name] of ["from", "to"].entries()) {
    if (ends) address.searchParams.set(name, ends[place]);
    else address.searchParams.delete(name);
  }
  history.replaceState(history.state, "", address);
}

// The range of the address, as texts of the zone's clock; null unless the chart shows a part of it.
function rangeOfAddress(data, timeZone) {
  const query = new URL(location.href).searchParams;
  const [from, to] = ["from", "to"].map((name) => Number(query.get(name)) * 1000);
  if (!(from > 0 && from < to)) return null;
  const texts = [from, to].map((at) => clockOf(timeZone).format(at));
  const [first, last] = rangeOf(data);
  return asUtc(texts[0]) < last && asUtc(texts[1]) > first ? texts : null;
}

function zoomActions(host) {
  if (host.nextElementSibling?.classList.contains("figure-actions")) host.nextElementSibling.remove();
  const actions = document.createElement("div");
  actions.className = "figure-actions";
  actions.hidden = true;
  const back = document.createElement("button");
  back.type = "button";
  back.className = "button button-small";
  back.textContent = "Reset zoom";
  actions.append(back);
  let analyse = null;
  if (host.dataset.analyse) {
    analyse = document.createElement("a");
    analyse.className = "button button-small";
    analyse.textContent = "Analyze time range";
    actions.append(analyse);
  }
  host.after(actions);
  return { actions, back, analyse };
}

function zoom(host, layout, time, isNarrow) {
  if (layout.xaxis?.type !== "date") return;
  const { actions, back, analyse } = zoomActions(host);
  const show = () => {
    const isZoomed = host.layout.xaxis.autorange === false || host.layout.yaxis.autorange === false;
    actions.hidden = !isZoomed;
    if (!isZoomed) return null;
    const [from, to] = host.layout.xaxis.range.map((text) => instantOf(text, time.zone) / 1000);
    const latest = Math.min(Math.ceil(to), Math.floor(Date.now() / 1000)); // analyses end now at the latest
    const ends = [Math.floor(from), Math.max(latest, Math.floor(from) + 1)];
    if (analyse) {
      const address = new URL(host.dataset.analyse, location.href);
      ["from", "to"].forEach((name, place) => address.searchParams.set(name, ends[place]));
      analyse.href = address;
    }
    return ends;
  };
  host.removeAllListeners("plotly_relayout");
  host.on("plotly_relayout", (change) => {
    if ("xaxis.dtick" in change) return; // our own answer
    const chosen = marks(host.layout.xaxis.range.map(asUtc), time, isNarrow);
    keepInAddress(show());
    window.Plotly.relayout(host, { "xaxis.dtick": chosen.dtick, "xaxis.tickformat": chosen.tickformat });
  });
  back.addEventListener("click", () => {
    window.Plotly.relayout(host, { "xaxis.autorange": true, "yaxis.autorange": true });
    host.querySelector("a, button")?.focus();
  });
  show();
}

function draw() {
  for (const host of document.querySelectorAll("[data-figure]")) {
    const { figure, opens, time } = JSON.parse(document.getElementById(host.dataset.figure).textContent);
    const layout = figure.layout ?? {};
    const colorway = layout.colorway ?? [];
    const data = zoned(figure.data, time.zone).map((trace, place) => shaded(trace, place, shades(colorway), colorway));
    const isNarrow = host.clientWidth < NARROW;
    const shown = themed(data, isNarrow ? stood(data, layout) : layout, isNarrow, time);
    const range = layout.xaxis?.type === "date" ? rangeOfAddress(data, time.zone) : null;
    if (range) Object.assign(shown.xaxis, { range, autorange: false, ...marks(range.map(asUtc), time, isNarrow) });
    host.style.height = `${shown.height}px`; // what Plotly draws does not make it grow
    window.Plotly.react(host, data, shown, CONFIG);
    follow(host, opens);
    zoom(host, layout, time, isNarrow);
    const beside = host.previousElementSibling;
    if (beside?.classList.contains("figure-legend")) beside.remove();
    host.before(legend(host, data));
  }
}

draw();
for (const wish of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) matchMedia(wish).addEventListener("change", draw);
