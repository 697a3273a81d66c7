// The map of the routing: arrow keys go along its ways, a new way pulses with its first message, and another version of
// the definitions is drawn as soon as it is in force.

const FRAMES_OF_PULSE = 4000;
// A screen on which the picture would have to be moved sideways.
const NARROW = "(max-width: 760px)";

const map = () => document.getElementById("map");

// Whoever asked for neither is shown the table there, under the same address: what suits the screen. It leads to the picture.
const table = map()?.dataset.narrow;
if (table && matchMedia(NARROW).matches) window.htmx.ajax("GET", table, { target: "#main", select: "#main", swap: "outerHTML" });

function ways() {
  return JSON.parse(document.getElementById("map-ways")?.textContent ?? "[]");
}

function node(number) {
  return map().querySelector(`[data-node="${number}"]`);
}

function middle(element) {
  const box = element.querySelector("rect").getBoundingClientRect();
  return { x: box.x, y: box.y + box.height / 2 };
}

// The nearest of the nodes that a way leads to, or of those above or below in the same column.
function towards(from, key) {
  const here = middle(from);
  const number = Number(from.dataset.node);
  let others = [];
  if (key === "ArrowRight") others = ways().filter(([source]) => source === number).map(([, target]) => node(target));
  if (key === "ArrowLeft") others = ways().filter(([, target]) => target === number).map(([source]) => node(source));
  if (key === "ArrowUp" || key === "ArrowDown") {
    const sign = key === "ArrowDown" ? 1 : -1;
    others = [...map().querySelectorAll("[data-node]")].filter((other) => {
      const there = middle(other);
      return Math.abs(there.x - here.x) < 60 && sign * (there.y - here.y) > 1;
    });
  }
  const distance = (other) => Math.round(Math.abs(middle(other).y - here.y));
  const nearest = (one, other) => distance(one) - distance(other) || middle(one).y - middle(other).y;
  return others.filter(Boolean).sort(nearest)[0];
}

document.addEventListener("keydown", (event) => {
  const from = event.target.closest?.("[data-node]");
  if (!from || !event.key.startsWith("Arrow")) return;
  const to = towards(from, event.key);
  if (!to) return;
  event.preventDefault();
  to.focus();
  to.scrollIntoView({ block: "nearest", inline: "nearest" });
});

function pulse(way) {
  way.classList.add("pulsing");
  way.removeAttribute("data-fresh-way");
  setTimeout(() => way.classList.remove("pulsing"), FRAMES_OF_PULSE);
}

document.addEventListener("live:cells", (event) => {
  const here = map();
  if (!here || event.target !== here) return;
  const cells = event.detail;
  for (const way of here.querySelectorAll("[data-fresh-way]")) {
    const count = cells[`${way.dataset.rowOf}#count`];
    if (count !== undefined && way.dataset.count !== "" && count > Number(way.dataset.count)) pulse(way);
  }
  if (cells.version > Number(here.dataset.version)) {
    here.dataset.version = cells.version;
    here.dispatchEvent(new Event("routing:changed"));
  }
});

// Where the focus was it stays, also when the map is drawn anew.
let focused = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "map") focused = document.activeElement?.closest?.("[data-node]")?.getAttribute("aria-label") ?? null;
});
document.addEventListener("htmx:afterSwap", () => {
  if (focused) [...map().querySelectorAll("[data-node]")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
  focused = null;
});

// What was just applied is told once: a reload, or the address sent to somebody, shows the routing as it stands.
const address = new URL(location.href);
if (address.searchParams.has("fresh")) {
  address.searchParams.delete("fresh");
  history.replaceState(history.state, "", address);
}

map()?.querySelector(".node-focused, [data-fresh-way]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
