// Lists: selecting rows, and sorting again when somebody asks or nobody has touched the page for a while.

const IDLE = 10000;
const LOOK_EVERY = 2000;

let touched = Date.now();
for (const event of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
  document.addEventListener(event, () => { touched = Date.now(); }, { passive: true, capture: true });
}

function boxes() {
  return [...document.querySelectorAll("[data-select]")];
}

function showSelection() {
  const bar = document.querySelector("[data-bulk]");
  if (!bar) return;
  const count = boxes().filter((box) => box.checked).length;
  bar.hidden = count === 0;
  bar.querySelector("[data-selected]").textContent = count;
  const all = document.querySelector("[data-select-all]");
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && count < boxes().length;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.matches("[data-select-all], [data-select]")) showSelection();
});

let last = null;
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-select-none]")) {
    for (const box of boxes()) box.checked = false;
    showSelection();
  }
  if (event.target.closest("[data-resort]")) sortAgain();
  const box = event.target.closest("[data-select]");
  if (box && event.shiftKey && last) {
    const all = boxes();
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((one, other) => one - other);
    if (from >= 0) for (const each of all.slice(from, to + 1)) each.checked = box.checked;
    showSelection();
  }
  if (box) last = box;
});

// What a row is sorted by, as it is shown now.
function keys() {
  const list = document.querySelector("#list .list");
  const sort = list?.dataset.sort;
  if (!sort) return null;
  const name = sort.replace("-", "");
  const cells = [...list.querySelectorAll("tbody [data-cell]")].filter((cell) => cell.dataset.cell === name);
  const sign = sort.startsWith("-") ? -1 : 1;
  return cells.map((cell) => sign * Number(cell.textContent.replaceAll(",", "")));
}

function isOutOfOrder() {
  const found = keys();
  return found !== null && found.some((value, place) => place > 0 && value < found[place - 1]);
}

function sortAgain() {
  window.htmx.ajax("GET", location.pathname + location.search, { target: "#list", swap: "innerHTML" });
}

function look() {
  const list = document.querySelector("#list .list");
  if (!list || document.hidden) return;
  const isWrong = isOutOfOrder();
  const button = document.querySelector("[data-resort]");
  if (button) button.hidden = !isWrong;
  const isIdle = Date.now() - touched > IDLE && !boxes().some((box) => box.checked) && !list.querySelector("details[open]");
  const isLive = document.querySelector("[data-pill]")?.dataset.state === "live";
  const isBusy = list.querySelector("tr:hover, tr:focus-within, input:focus");
  if (isIdle && isLive && !isBusy && list.dataset.sort) {
    touched = Date.now(); // once in so long
    sortAgain();
  }
}

// A star that is given or taken away is counted by its chip.
document.addEventListener("starred", (event) => {
  const count = document.querySelector('.chips a[href*="show=starred"] b');
  if (count) count.textContent = (Number(count.textContent.replaceAll(",", "")) + event.detail.by).toLocaleString("en");
});

setInterval(look, LOOK_EVERY);
document.addEventListener("htmx:afterSettle", showSelection);
showSelection();
