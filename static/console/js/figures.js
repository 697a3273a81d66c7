// Plotly figures in the page's own colours and type. The server sends figure JSON; nothing of it is executed. The legend
// is the page's own: a list that wraps, above the plot, however narrow that is; its entries show and hide what they name.

import { tableOf } from "./tables.js";

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
  const filled = trace.stackgroup ? { fillcolor: shade.replace("rgb(", "rgba(").replace(")", ", .42)") } : {};
  return { ...trace, ...filled, name: called(trace.name), line: { ...trace.line, color: shade }, marker: { ...trace.marker, color: shade } };
}

const MINUTE = 60000;

function spanOf(data) {
  const moments = data.flatMap((trace) => [trace.x?.[0], trace.x?.[trace.x.length - 1]]).filter(Boolean).map(Date.parse);
  return Math.max(...moments) - Math.min(...moments);
}

function themed(data, layout, isNarrow) {
  const [ink, soft, line, raised] = ["ink", "soft", "line", "raised"].map(token);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft };
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: "rgba(0,0,0,0)", automargin: true };
  const axes = {};
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((each) => /^[xy]axis\d*$/.test(each))])) {
    const said = layout[name] ?? {};
    axes[name] = { ...axis, ...(isNarrow && { nticks: 5 }), ...said, title: { ...said.title, font: { ...font, size: 12 }, standoff: 10 } };
    if (said.type === "date" && spanOf(data) < 10 * MINUTE) axes[name].dtick = 2 * MINUTE; // no slot is shorter than one
    if (said.type === "date") Object.assign(axes[name], { showgrid: false, tickformatstops: CLOCK });
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

// Plotly draws times as their texts say them: they are told by the clock that the page's reader chose.
const timeZone = document.documentElement.dataset.zone || "UTC";
const local = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

function inZone(value) {
  if (typeof value !== "string" || !MOMENT.test(value)) return value;
  const isExact = /(Z|[+-]\d\d:?\d\d)$/.test(value);
  return local.format(Date.parse(isExact ? value : `${value.replace(" ", "T")}Z`));
}

function zoned(data) {
  if (timeZone === "UTC") return data;
  return data.map((trace) => (Array.isArray(trace.x) ? { ...trace, x: trace.x.map(inZone) } : trace));
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

// The day is said once, below the first label of it; hours have no seconds.
const CLOCK = [
  { dtickrange: [null, 1000], value: "%H:%M:%S.%L" },
  { dtickrange: [1000, 59999], value: "%H:%M:%S\n%-d %b" },
  { dtickrange: [60000, 86400000], value: "%H:%M\n%-d %b" },
  { dtickrange: [86400000, null], value: "%-d %b\n%Y" },
];

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
    swatch.className = places.length === 1 && last.line?.dash && last.line.dash !== "solid" ? "key key-dotted" : "key";
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

function tabulated(data, opens) {
  const lies = isLying(data[0] ?? {});
  const along = [...new Set(data.flatMap((trace) => [...((lies ? trace.y : trace.x) ?? [])]))];
  const columns = data.map((trace) => {
    const values = lies ? trace.x : trace.y;
    const said = new Map((lies ? trace.y : trace.x).map((key, place) => [key, trace.customdata?.[place] ?? values[place]]));
    return (key) => { const value = said.get(key); return typeof value === "number" ? decimal.format(value) : value ?? "–"; };
  });
  const headed = (trace) => ({ text: called(trace.name) ?? "", url: lies ? "" : opens[trace.legendgroup] ?? opens[trace.name] });
  const row = (key) => [{ text: lies ? key : inZone(key), url: lies ? opens[key] : "" }, ...columns.map((read) => read(key))];
  return tableOf([lies ? "" : `Time, ${timeZone}`, ...data.map(headed)], along.map(row));
}

for (const details of document.querySelectorAll("details.chart-table")) {
  const host = details.querySelector("[data-plot-table]");
  if (!host) continue;
  details.addEventListener("toggle", () => {
    if (!details.open || host.hasChildNodes()) return;
    const { figure, opens } = JSON.parse(document.getElementById(host.dataset.plotTable).textContent);
    host.append(tabulated(figure.data, opens));
  });
}

function draw() {
  for (const host of document.querySelectorAll("[data-figure]")) {
    const { figure, opens } = JSON.parse(document.getElementById(host.dataset.figure).textContent);
    const layout = figure.layout ?? {};
    const colorway = layout.colorway ?? [];
    const data = zoned(figure.data).map((trace, place) => shaded(trace, place, shades(colorway), colorway));
    const isNarrow = host.clientWidth < NARROW;
    const shown = themed(data, isNarrow ? stood(data, layout) : layout, isNarrow);
    host.style.height = `${shown.height}px`; // what Plotly draws does not make it grow
    window.Plotly.react(host, data, shown, CONFIG);
    follow(host, opens);
    const beside = host.previousElementSibling;
    if (beside?.classList.contains("figure-legend")) beside.remove();
    host.before(legend(host, data));
  }
}

draw();
for (const wish of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) matchMedia(wish).addEventListener("change", draw);
