// Plotly figures in the page's own colours and type. The server sends figure JSON; nothing of it is executed.

function token(name) {
  // A custom property that holds light-dark() is resolved only where it is used.
  const probe = document.createElement("i");
  probe.className = `probe probe-${name}`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

const HEIGHT = 360;

function themed(layout) {
  const [ink, soft, line, raised] = ["ink", "soft", "line", "raised"].map(token);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft };
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line, automargin: true };
  const axes = {};
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((each) => /^[xy]axis\d*$/.test(each))])) {
    axes[name] = { ...axis, ...layout[name], title: { ...layout[name]?.title, font: { ...font, size: 12 } } };
  }
  return {
    height: HEIGHT,
    ...layout,
    ...axes,
    font,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: raised, bordercolor: line, font: { ...font, color: ink } },
    margin: { l: 60, r: 20, t: 12, b: 44, ...layout.margin },
    // above the plot: below it, many names would lie on the labels of the axis
    legend: { ...layout.legend, font: { ...font, color: ink }, x: 0, xanchor: "left", y: 1.03, yanchor: "bottom" },
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

const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };

function draw() {
  for (const host of document.querySelectorAll("[data-figure]")) {
    const figure = JSON.parse(document.getElementById(host.dataset.figure).textContent);
    host.style.height = `${(figure.layout?.height ?? HEIGHT) + 10}px`; // what Plotly draws does not make it grow
    window.Plotly.react(host, zoned(figure.data), themed(figure.layout ?? {}), CONFIG);
  }
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
