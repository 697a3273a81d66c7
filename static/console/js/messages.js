// The list of messages and its panel: tabs of the body, j and k through the rows, Escape to close.

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
});

document.addEventListener("click", async (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) showTab(tab);
  const closer = event.target.closest("[data-panel-close]");
  if (closer) {
    event.preventDefault();
    history.pushState({}, "", closer.href);
    close();
  }
  const copy = event.target.closest("[data-copy-shown]");
  if (copy) await navigator.clipboard.writeText(document.querySelector("[role=tabpanel]:not([hidden]) pre").textContent);
  const row = event.target.closest("[data-rows] tbody tr");
  if (row) {
    const link = row.querySelector("a[hx-get]");
    if (!event.target.closest("a")) link.click();
    else select(link);
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
  if (event.key !== "j" && event.key !== "k") return;
  const all = links();
  const here = all.findIndex((link) => link.closest("tr").getAttribute("aria-selected") === "true");
  const next = all[Math.max(0, Math.min(all.length - 1, here + (event.key === "j" ? 1 : -1)))];
  if (next) {
    next.focus();
    next.click();
  }
});
