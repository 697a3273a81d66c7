// The keyboard: command palette, help sheet, go-to keys and rows of a list. What keys go where stands in the help sheet.

const palette = document.getElementById("palette");
const help = document.getElementById("help");
const PAUSE_MS = 1200; // how long the second key of two may take
let first = "";
let firstTimer = 0;

const hasSingleKeys = () => document.body.dataset.keys !== "off";
const isTyping = (target) => target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]") !== null;

// -- palette

const field = palette?.querySelector("input");
const options = () => [...palette.querySelectorAll("[role=option]")];

function openPalette() {
  if (palette.open) return palette.close();
  field.value = "";
  palette.showModal();
  field.focus();
  window.htmx.trigger(field, "opened");
}

function choose(step) {
  const all = options();
  if (!all.length) return;
  const here = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
  const next = all[(here + step + all.length) % all.length];
  for (const option of all) option.setAttribute("aria-selected", "false");
  next.setAttribute("aria-selected", "true");
  next.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", next.id);
}

function open(option) {
  if (option) window.location.assign(option.dataset.href);
}

palette?.addEventListener("click", (event) => open(event.target.closest("[role=option]")));
palette?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(step);
  else if (event.key === "Enter") open(palette.querySelector("[aria-selected=true]"));
  else return;
  event.preventDefault();
});
palette?.addEventListener("submit", (event) => event.preventDefault());
for (const dialog of [palette, help]) {
  dialog?.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}

// -- rows

// What opens a row: the link of its name, or else its first one.
const ROWS = "main :is(tbody tr, .routing-issues > li, a.finding, article.connector, article.report-card, [data-row-link])";
const linkOf = (row) => row.matches("a") ? row : row.querySelector("th[scope=row] a") ?? row.querySelector("a");
const links = () => [...document.querySelectorAll(ROWS)].map(linkOf).filter((link) => link?.offsetParent);

function step(by) {
  const all = links();
  const here = all.findLastIndex((link) => (link.closest("tr, li, article") ?? link).contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, here + by))]?.focus();
}

// The arrows go from row to row where the focus is on one, whether or not single letters are keys; elsewhere they scroll.
function stepByArrow(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !links().includes(document.activeElement)) return;
  event.preventDefault();
  step(by);
}

const ROW_KEYS = {
  j: () => step(1),
  k: () => step(-1),
  x: () => document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click(),
  r: () => document.querySelector("main [data-key=r]")?.click(),
};

// -- all of it

// The filter of the page, or else the search of the bar.
function search() {
  const field = document.querySelector("main [data-slash]") ?? document.querySelector("[data-slash]");
  field?.focus();
  field?.select();
}

function goTo(keys) {
  const link = help.querySelector(`[data-keys="${keys}"]`);
  if (link) window.location.assign(link.href);
  return link !== null;
}

function wasSecond(key) {
  const keys = `${first} ${key}`;
  first = "";
  clearTimeout(firstTimer);
  return goTo(keys);
}

document.addEventListener("keydown", (event) => {
  if (!palette) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open], :popover-open")) return;
  stepByArrow(event);
  if (!hasSingleKeys()) return;
  if (first && wasSecond(event.key)) event.preventDefault();
  else if (event.key === "g") {
    first = "g";
    firstTimer = setTimeout(() => { first = ""; }, PAUSE_MS);
  } else if (event.key === "?") help.showModal();
  else if (event.key === "/") {
    event.preventDefault();
    search();
  }
  else if (ROW_KEYS[event.key] && !event.defaultPrevented) ROW_KEYS[event.key]();
});
