// The live socket of this tab. Containers name a topic (`data-topic`); elements inside name the cell they show.
//
//   data-cell="NAME"         text                     data-cell-html="NAME"   markup the server rendered
//   data-cell-points="NAME"  points of a polyline     data-cell-value="NAME"  value of a progress bar
//   data-cell-state="NAME"   becomes data-state       data-cell-flag="NAME"   becomes data-flag
//
// Rows of a list carry `data-row`; their cells are called ROW#COLUMN. Frames hold only what changed.

const RETRY_FIRST = 500;
const RETRY_LAST = 15000;
const LATE = 3500; // milliseconds without a frame after which the page is behind
const LOGGED_OUT = 4401;

const pill = document.querySelector("[data-pill]");
let socket = null;
let retry = RETRY_FIRST;
let lastFrame = 0;
let serverAge = null;
let trouble = "";
let isOver = false;

function topicsOnPage() {
  return [...document.querySelectorAll("[data-topic]")];
}

function rowsOf(container) {
  return [...container.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
}

function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function subscribe() {
  for (const container of topicsOnPage()) {
    send({ type: "subscribe", topic: container.dataset.topic, rows: rowsOf(container) });
  }
}

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
  socket.addEventListener("open", () => {
    retry = RETRY_FIRST;
    lastFrame = Date.now();
    subscribe();
    send({ type: "visible", value: !document.hidden });
  });
  socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
  socket.addEventListener("close", (event) => {
    socket = null;
    if (event.code === LOGGED_OUT) {
      isOver = true;
      show("offline", "Logged out");
      return;
    }
    showState();
    setTimeout(connect, retry * (0.5 + Math.random()));
    retry = Math.min(RETRY_LAST, retry * 2);
  });
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

function apply(container, cells) {
  for (const element of container.querySelectorAll("[data-cell]")) {
    const text = cells[element.dataset.cell];
    if (text !== undefined && element.textContent !== String(text)) {
      element.textContent = text;
      if (element.classList.contains("number")) element.classList.toggle("zero", Number(text) === 0);
      flash(element);
    }
  }
  each(container, cells, "cellHtml", "[data-cell-html]", (element, value) => { element.innerHTML = value; });
  each(container, cells, "cellPoints", "[data-cell-points]", (element, value) => element.setAttribute("points", value));
  each(container, cells, "cellValue", "[data-cell-value]", (element, value) => { element.value = value; });
  each(container, cells, "cellState", "[data-cell-state]", (element, value) => { element.dataset.state = value; });
  each(container, cells, "cellFlag", "[data-cell-flag]", (element, value) => { element.dataset.flag = String(value); });
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

function each(container, cells, key, selector, change) {
  for (const element of [container, ...container.querySelectorAll(selector)]) {
    const name = element.dataset[key];
    if (name !== undefined && cells[name] !== undefined && cells[name] !== null) change(element, cells[name]);
  }
}

function flash(element) {
  element.classList.remove("changed");
  void element.offsetWidth; // restarts the animation
  element.classList.add("changed");
}

function showState() {
  if (isOver) return;
  if (socket?.readyState !== WebSocket.OPEN) return show(lastFrame ? "offline" : "connecting", lastFrame ? "Offline" : "Connecting");
  const silence = Date.now() - lastFrame;
  const behind = Math.round((serverAge ?? 0) + silence / 1000);
  if (trouble || silence > LATE || behind * 1000 > LATE) return show("behind", serverAge === null ? "No numbers" : `Behind ${behind} s`);
  return show("live", "Live");
}

function show(state, text) {
  if (!pill) return;
  if (pill.dataset.state !== state) pill.dataset.state = state;
  const label = pill.querySelector("span");
  if (label.textContent !== text) label.textContent = text;
  pill.title = trouble;
}

if (pill) {
  // For tests, and for whoever wants to see what happens when the line is cut.
  window.sluiceLive = { cut: () => socket?.close() };
  connect();
  setInterval(showState, 500);
  document.addEventListener("visibilitychange", () => send({ type: "visible", value: !document.hidden }));
  document.addEventListener("htmx:afterSettle", subscribe);
}
