// Messages: tabs of the body, j and k through the rows, Escape to close; selecting, writing, and following a queue.

const MAX_ROWS = 500; // a page that follows keeps the newest
const LATE = 5000; // milliseconds without an answer after which it says so

const browser = () => document.querySelector(".browser");

function links() {
  return [...document.querySelectorAll("[data-rows] tbody a[hx-get]")];
}

function select(link) {
  for (const row of document.querySelectorAll("[data-rows] [aria-selected]")) row.removeAttribute("aria-selected");
  link.closest("tr").setAttribute("aria-selected", "true");
}

function showTab(tab) {
  for (const other of tab.parentElement.querySelectorAll("[role=tab]")) {
    const isShown = other === tab;
    other.setAttribute("aria-selected", String(isShown));
    other.tabIndex = isShown ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !isShown;
  }
  tab.focus();
}

function close() {
  browser().classList.remove("open");
  document.getElementById("panel").replaceChildren();
  const link = document.querySelector("[data-rows] [aria-selected] a");
  link?.closest("tr").removeAttribute("aria-selected");
  link?.focus();
}

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "panel") browser().classList.add("open");
  if (event.detail.target.id === "resubmit" || event.detail.target.id === "job-request") {
    (document.querySelector("#reason") ?? document.querySelector("#job-request a"))?.focus();
  }
});

document.addEventListener("click", async (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) showTab(tab);
  const closer = event.target.closest("[data-panel-close]");
  if (closer) {
    event.preventDefault();
    history.pushState({ htmx: true }, "", closer.href); // htmx shows what Back leads to
    close();
  }
  const copy = event.target.closest("[data-copy-shown]");
  if (copy) await navigator.clipboard.writeText(document.querySelector("[role=tabpanel]:not([hidden]) pre").textContent);
  const row = event.target.closest("[data-rows] tbody tr");
  if (row) {
    const link = row.querySelector("a[hx-get]");
    if (event.target.closest("a")) select(link);
    else if (!event.target.closest(".tick")) link.click();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const tab = event.target.closest("[role=tab]");
  if (tab && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
    const tabs = [...tab.parentElement.querySelectorAll("[role=tab]")];
    showTab(tabs.at((tabs.indexOf(tab) + (event.key === "ArrowRight" ? 1 : -1)) % tabs.length));
    return;
  }
  if (event.key === "Escape" && browser()?.classList.contains("open")) document.querySelector("[data-panel-close]")?.click();
  if (document.body.dataset.keys === "off") return;
  // keys.js knows r on what is open, and x; here it is what is selected
  if (event.key === "r" && !document.querySelector("main [data-key=r]")) document.querySelector("[data-bulk][value=retry]:enabled")?.click();
  if (event.key !== "j" && event.key !== "k") return;
  const all = links();
  const here = all.findIndex((link) => link.closest("tr").getAttribute("aria-selected") === "true");
  const next = all[Math.max(0, Math.min(all.length - 1, here + (event.key === "j" ? 1 : -1)))];
  if (next) {
    next.focus();
    next.click();
  }
});

// -- selecting

function count() {
  const chosen = document.querySelectorAll("#selection .tick input[name=seq]:checked").length;
  const label = document.querySelector("[data-selected]");
  if (label) label.textContent = chosen.toLocaleString("en");
  for (const button of document.querySelectorAll("[data-bulk]")) button.disabled = chosen === 0;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) {
    for (const tick of document.querySelectorAll("#selection .tick input[name=seq]")) tick.checked = event.target.checked;
  }
  if (event.target.closest("#selection")) count();
});
count();

// -- writing a message

// A body that is too large is named before it is sent: the form stays as it is.
function weigh(form) {
  const chosen = (name) => form.querySelector(`[name=${name}]:checked`)?.value;
  const kind = chosen("kind");
  const encoding = kind === "bytes" || form.querySelector("[name=is-coded]") ? chosen("encoding") : "text";
  for (const field of form.querySelectorAll("[data-max-bytes]")) {
    const isUsed = kind !== "map" && (field.type === "file") === (encoding === "file");
    const size = isUsed ? sizeOf(field, encoding) : 0;
    const most = Number(field.dataset.maxBytes);
    field.setCustomValidity(size > most ? `The body has ${size.toLocaleString("en")} bytes. At most ${most.toLocaleString("en")} bytes are allowed.` : "");
    if (field.type === "file") field.required = isUsed;
  }
}

function sizeOf(field, encoding) {
  if (field.type === "file") return field.files[0]?.size ?? 0;
  if (encoding === "base64") return Math.floor((field.value.length * 3) / 4);
  return encoding === "hex" ? Math.floor(field.value.length / 2) : new Blob([field.value]).size;
}

document.addEventListener("change", (event) => { if (event.target.form) weigh(event.target.form); });

document.addEventListener("click", (event) => {
  const rows = event.target.closest("[data-property-rows]");
  if (event.target.closest("[data-add-property]")) addProperty(rows);
  const removing = event.target.closest("[data-remove-property]");
  if (removing) removeProperty(rows, removing.closest(".property-row"));
});

function addProperty(rows) {
  const list = rows.querySelector("[data-rows-list]");
  list.append(rows.querySelector("template[data-property-row]").content.cloneNode(true));
  numberProperties(list);
  list.lastElementChild.querySelector("input").focus();
}

function removeProperty(rows, row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  numberProperties(rows.querySelector("[data-rows-list]"));
  (next?.querySelector("input") ?? rows.querySelector("[data-add-property]")).focus();
  rows.dispatchEvent(new Event("change", { bubbles: true })); // the preview of an edit follows
}

function numberProperties(list) {
  for (const [index, row] of [...list.children].entries()) {
    for (const field of row.querySelectorAll("[aria-label]")) {
      field.setAttribute("aria-label", field.getAttribute("aria-label").replace(/\d*$/, index + 1));
    }
  }
}

// -- following: the live socket says that messages came, then the page asks for those after the last it has

const follow = document.querySelector("[data-follow]");
let asking = false;
let again = false;
let isBehind = false; // whether more came than the last look showed
let heard = Date.now();
let waiting = []; // rows that came while those on the page hold still, the newest first

// Rows that somebody points at, works in or has ticked must not move under the pointer; see live.js.
function isHeld(rows) {
  return rows.matches(":hover, :focus-within") || rows.querySelector(".tick input:checked") !== null;
}

function show() {
  const rows = document.getElementById("rows");
  if (!waiting.length || isHeld(rows)) return;
  rows.prepend(...waiting);
  waiting = [];
  window.htmx?.process(rows);
  while (rows.childElementCount > MAX_ROWS) rows.lastElementChild.remove();
  tell();
}

function tell() {
  if (waiting.length) return say("live", `Live: ${waiting.length === MAX_ROWS ? `${MAX_ROWS} or more` : waiting.length} new messages. They are shown when no row is selected or focused.`);
  return say("live", isBehind ? "Live: loading more messages." : `Live: up to date, last message number ${follow.dataset.last}.`);
}

function say(state, text) {
  if (follow.dataset.state === state && !text) return;
  follow.dataset.state = state;
  follow.querySelector("[data-follow-state]").textContent = text;
}

async function more() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  again = false;
  try {
    const answer = await fetch(`${follow.dataset.follow}&after=${follow.dataset.last}`, { headers: { "HX-Request": "true", "HX-Target": "follow" } });
    if (!answer.ok) throw new Error(String(answer.status));
    heard = Date.now();
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = parsed.querySelector("[data-followed]");
    const came = [...found.content.querySelectorAll("tr")].reverse(); // in order, and the newest stands on top
    waiting = [...came, ...waiting].slice(0, MAX_ROWS);
    if (Number(found.dataset.last)) follow.dataset.last = found.dataset.last;
    isBehind = found.dataset.more === "true";
    again ||= isBehind;
    tell();
    show();
  } catch {
    say("offline", "Connection lost. New messages will appear after reconnecting.");
    setTimeout(more, 2000);
  } finally {
    asking = false;
  }
  if (again) setTimeout(more, 200);
}

if (follow) {
  document.querySelector("[data-watch]").addEventListener("live:cells", more);
  setInterval(() => {
    if (Date.now() - heard > LATE) more(); // the socket may be away: what came is asked for all the same
  }, LATE);
  setInterval(show, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) more(); });
}
