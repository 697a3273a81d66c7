// Every page: the live socket, charts, and the small conveniences of the frame.

import "./live_socket.js";
import { startCharts } from "../components/chart.js";

// Bars that scroll sideways begin where one is.
for (const here of document.querySelectorAll(":is(.nav, .subnav, .page-tabs) [aria-current]")) {
  const bar = here.closest(".nav, .subnav, .page-tabs");
  if (bar.scrollWidth > bar.clientWidth) bar.scrollLeft = here.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
}

// The browser alone knows the zone of whoever looks.
const here = document.querySelector("[data-local-zone]");
if (here) {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  here.value = timeZone;
  here.title = `Times shown in ${timeZone}`;
  if (here.hasAttribute("aria-pressed") && document.documentElement.dataset.zone !== timeZone) here.removeAttribute("aria-pressed");
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent);
    const label = copy.lastChild;
    const before = label.textContent;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = before; }, 1500);
  }
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// A window that the address names goes along to the pages that know windows: overview, lists, destinations, analyses.
const WINDOWED = /^\/(|(queues|topics)\/(.+\/)?|analytics\/(ask\/\w+\/)?)$/;
const OF_WINDOW = ["window", "from", "to"];

document.addEventListener("click", (event) => {
  const link = event.target.closest("main a[href], .nav a[href]");
  const chosen = new URLSearchParams(location.search);
  if (!link || !WINDOWED.test(link.pathname) || link.pathname.endsWith("/messages/")) return;
  const wanted = new URLSearchParams(link.search);
  if (OF_WINDOW.some((name) => wanted.has(name)) || !(chosen.has("window") || (chosen.has("from") && chosen.has("to")))) return;
  if (link.closest("nav.segments")) return; // it chooses a window itself
  for (const name of OF_WINDOW) if (/^\w+$/.test(chosen.get(name) ?? "")) wanted.set(name, chosen.get(name));
  link.search = wanted;
}, true);

// What somebody has seen in the notifications is not counted again.
document.addEventListener("toggle", (event) => {
  const { seen } = event.target.dataset ?? {};
  if (!seen || !event.target.open) return;
  fetch(seen, { method: "POST", headers: { "X-CSRFToken": document.querySelector(".bar [name=csrfmiddlewaretoken]").value } });
}, true);

// A part of a page that the server refused: the sentence of the page that says so, where other notes stand.
document.addEventListener("htmx:responseError", (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  const sentence = page.querySelector("main h1 + p")?.textContent ?? "The request failed. Reload the page and try again.";
  const note = document.createElement("div");
  note.className = "note note-error";
  note.setAttribute("role", "alert");
  note.textContent = sentence;
  document.querySelector("main > .note[role=alert]")?.remove();
  document.getElementById("main").prepend(note);
});

// What is open over a page is closed when the page is left: the browser may keep the page and show it again.
window.addEventListener("pagehide", () => {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll(".menu[open]")) {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    }
  }
});

// A button that destroys is enabled by typing the name of what it destroys.
function lock(typed) {
  typed.form.querySelector("[type=submit]").disabled = typed.value !== typed.dataset.mustEqual;
}

function lockAll() {
  document.querySelectorAll("[data-must-equal]").forEach(lock);
}

document.addEventListener("input", (event) => { if (event.target.matches("[data-must-equal]")) lock(event.target); });
document.addEventListener("htmx:afterSettle", lockAll);

lockAll();
startCharts();
document.addEventListener("htmx:afterSettle", startCharts);
