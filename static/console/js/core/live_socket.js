// The live socket of this tab. Containers name a topic (`data-topic`); elements inside name the cell they show.
//
//   data-cell="NAME"         text                     data-cell-html="NAME"   markup the server rendered
//   data-cell-spark="NAME"   line of a sparkline      data-cell-value="NAME"  value of a progress bar
//   data-cell-state="NAME"   becomes data-state       data-cell-flag="NAME"   becomes data-flag
//
// Rows of a list carry `data-row`; their cells come as `rows: {ROW: {NAME: VALUE}}`, or, from runs and jobs, flat as
// ROW#NAME. Frames hold only what changed. A row, or markup, that is hovered, focused or selected holds still: what comes
// for it is kept, the latest only, and shown when it is let go.

import { changed, say } from "./screen_reader_summary.js";

const RETRY_FIRST = 500;
const RETRY_LAST = 15000;
const LATE = 3500; // milliseconds without a frame after which the page is behind
const DEAD = 20000; // and after which the line is taken for cut: after a sleep a socket may look open for long
const LOGGED_OUT = 4401;
const SEEN_OTHERWISE = 4409; // the page shows the console as somebody else than the server does by now

const pill = document.querySelector("[data-pill]");
let socket = null;
let retry = RETRY_FIRST;
let retryTimer = 0;
let lastFrame = 0;
let serverAge = null;
let trouble = "";
let isOver = false;
let isPaused = false;
let wasOpen = false;
let wasCached = false; // whether the browser kept the page while others were shown

function topicsOnPage() {
  return [...document.querySelectorAll("[data-topic]")];
}

function rowsOf(container) {
  return [...container.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
}

function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

let subscribed = new Set();

function subscribe() {
  const rows = new Map();
  for (const container of topicsOnPage()) {
    const topic = container.dataset.topic;
    rows.set(topic, [...(rows.get(topic) ?? []), ...rowsOf(container)]);
  }
  for (const topic of subscribed) if (!rows.has(topic)) send({ type: "unsubscribe", topic });
  for (const [topic, shown] of rows) send({ type: "subscribe", topic, rows: [...new Set(shown)] });
  subscribed = new Set(rows.keys());
}

function connect() {
  clearTimeout(retryTimer);
  if (isPaused || isOver) return;
  const { user, seenAs = "" } = document.body.dataset;
  const shownTo = new URLSearchParams({ user, as: seenAs });
  const mine = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live?${shownTo}`);
  socket = mine;
  mine.addEventListener("open", () => {
    retry = RETRY_FIRST;
    lastFrame = Date.now();
    subscribed = new Set();
    subscribe();
    send({ type: "visible", value: !document.hidden });
    if (wasOpen) document.dispatchEvent(new CustomEvent("live:back"));
    wasOpen = true;
  });
  mine.addEventListener("message", (event) => { if (mine === socket) receive(JSON.parse(event.data)); });
  mine.addEventListener("close", (event) => { if (mine === socket) lost(event.code); });
}

function lost(code) {
  socket = null;
  if (code === LOGGED_OUT || code === SEEN_OTHERWISE) {
    isOver = true;
    if (wasCached) return location.reload(); // it is not for who is signed in now
    show("offline", code === LOGGED_OUT ? "Signed out" : "Stale");
    return;
  }
  showState();
  if (isPaused) return;
  retryTimer = setTimeout(connect, retry * (0.5 + Math.random()));
  retry = Math.min(RETRY_LAST, retry * 2);
}

function drop() {
  const old = socket;
  socket = null;
  old?.close();
}

function receive(message) {
  if (message.type === "refused") {
    console.warn(`live: ${message.topic}: ${message.reason}`);
    return;
  }
  if (message.type !== "frame") return;
  lastFrame = Date.now();
  serverAge = message.age;
  trouble = message.trouble;
  for (const container of topicsOnPage()) {
    const cells = message.topics[container.dataset.topic];
    if (cells) apply(container, cells);
  }
  showState();
}

// -- rows that hold still

const kept = new WeakMap();

function isHeld(row) {
  return row.matches(":hover, :focus-within") || row.querySelector("[data-select]:checked") !== null;
}

function applyRow(row, cells) {
  if (isHeld(row)) {
    kept.set(row, { ...kept.get(row), ...cells });
    row.classList.add("values-paused");
    return;
  }
  fill(row, { ...kept.get(row), ...cells });
  kept.delete(row);
  row.classList.remove("values-paused");
  if (cells.gone) row.classList.add("gone");
}

// So does markup: else what has the focus would be gone, and what is pointed at somewhere else.
const keptMarkup = new Map();

function putMarkup(element, markup) {
  const holds = element.isConnected && isHeld(element);
  element.classList.toggle("values-paused", holds);
  if (holds) return keptMarkup.set(element, markup);
  keptMarkup.delete(element);
  element.innerHTML = markup;
}

function release() {
  for (const [element, markup] of keptMarkup) putMarkup(element, markup);
  for (const row of document.querySelectorAll("tr.values-paused")) {
    if (isHeld(row)) continue;
    fill(row, kept.get(row) ?? {});
    if (kept.get(row)?.gone) row.classList.add("gone");
    kept.delete(row);
    row.classList.remove("values-paused");
  }
}

function apply(container, cells) {
  if (cells.rows) {
    for (const row of container.querySelectorAll("[data-row]")) {
      const mine = cells.rows[row.dataset.row];
      if (mine) applyRow(row, mine);
    }
  }
  fill(container, cells, true);
  for (const row of container.querySelectorAll("[data-row]")) {
    if (cells[`${row.dataset.row}#gone`]) row.classList.add("gone");
  }
  for (const hint of container.querySelectorAll("[data-fresh]")) {
    const isNew = cells.count > Number(hint.dataset.fresh);
    if (isNew && hint.dataset.fresh === "0") location.reload(); // an empty page has nothing that could be disturbed
    if (cells.count !== undefined) hint.hidden = !isNew;
  }
  for (const element of container.querySelectorAll("[data-reload-when]")) {
    if (cells[element.dataset.reloadWhen] === true) location.reload();
  }
  container.dispatchEvent(new CustomEvent("live:cells", { detail: cells, bubbles: true }));
}

// Put cells into the elements that show them; those of a container not into its rows, nor into containers within it.
function fill(scope, cells, isContainer = false) {
  const isMine = (element) => !isContainer || element === scope || element.parentElement.closest("[data-topic]") === scope;
  for (const element of scope.querySelectorAll("[data-cell]")) {
    const text = cells[element.dataset.cell];
    if (text === undefined || element.textContent === String(text) || !isMine(element)) continue;
    element.textContent = text;
    if (element.classList.contains("number")) element.classList.toggle("zero", Number(text) === 0);
    flash(element);
    changed(element);
  }
  each("cellHtml", "[data-cell-html]", putMarkup);
  each("cellSpark", "[data-cell-spark]", drawSpark);
  each("cellValue", "[data-cell-value]", (element, value) => { element.value = value; });
  each("cellState", "[data-cell-state]", (element, value) => { element.dataset.state = value; });
  each("cellFlag", "[data-cell-flag]", (element, value) => { element.dataset.flag = String(value); });

  function each(key, selector, change) {
    for (const element of [scope, ...scope.querySelectorAll(selector)]) {
      const value = cells[element.dataset[key]];
      if (element.dataset[key] !== undefined && value !== undefined && value !== null && isMine(element)) change(element, value);
    }
  }
}

// A sparkline and what lies below it: each stretch of the line goes down, back and up.
function drawSpark(svg, line) {
  const [area, stroke] = svg.children;
  stroke.setAttribute("d", line);
  area.setAttribute("d", line.replace(/M(\d+),[^M]*/g, `$&V${svg.viewBox.baseVal.height}H$1Z`));
}

function flash(element) {
  element.classList.remove("changed");
  void element.offsetWidth; // restarts the animation
  element.classList.add("changed");
}

// -- the state, and a pause

function showState() {
  if (isOver) return undefined;
  if (isPaused) return show("paused", "Paused");
  if (socket?.readyState !== WebSocket.OPEN) return show(lastFrame ? "offline" : "connecting", lastFrame ? "Offline" : "Connecting");
  const silence = Date.now() - lastFrame;
  if (silence > DEAD) {
    drop();
    connect();
  }
  const behind = Math.round((serverAge ?? 0) + silence / 1000);
  if (trouble || silence > LATE || behind * 1000 > LATE) return show("behind", serverAge === null ? "Disconnected" : `Stale (${behind} s)`);
  return show("live", "Live");
}

function show(state, text) {
  if (!pill) return;
  if (pill.dataset.state !== state) {
    // What is live at first is as expected; a short delay is no news.
    if (state !== "behind" && pill.dataset.state !== "connecting") say("state", `Live data: ${text.toLowerCase()}`);
    pill.dataset.state = state;
  }
  const label = pill.querySelector("span");
  if (label.textContent !== text) label.textContent = text;
  pill.title = isOver ? "Reload the page" : trouble || (isPaused ? "Resume" : "Pause");
}

function pause() {
  if (isOver) return;
  isPaused = !isPaused;
  if (isPaused) drop();
  else connect();
  showState();
}

if (pill) {
  // For tests, and for whoever wants to see what happens when the line is cut.
  window.sluiceLive = { cut: () => socket?.close() };
  connect();
  setInterval(() => { showState(); release(); }, 500);
  pill.addEventListener("click", pause);
  document.addEventListener("visibilitychange", () => {
    send({ type: "visible", value: !document.hidden });
    if (!document.hidden && !socket) connect();
  });
  // A browser that keeps the page for Back cuts its socket; shown again, the page connects at once.
  window.addEventListener("pagehide", () => {
    clearTimeout(retryTimer);
    drop();
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    wasCached = true;
    connect();
  });
  document.addEventListener("htmx:afterSettle", subscribe);
}
