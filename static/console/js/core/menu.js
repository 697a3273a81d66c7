// The menu, folded to icons or not, with the entry of this page in sight. Loaded before the page is drawn, so that what
// was folded is so from the first moment.

const FOLDED = "sluice.folded";
// Pixels beside the current entry, so that the next one is seen to be there.
const MARGIN = 48;

function fold(isFolded) {
  document.body.classList.toggle("folded", isFolded);
  document.querySelector("[data-fold]")?.setAttribute("aria-expanded", String(!isFolded));
}

// Scrolls the menu alone: `scrollIntoView` would move the page, too.
function reveal(menu, entry) {
  if (!entry) return;
  menu.scrollTop = entry.offsetTop + entry.offsetHeight + MARGIN - menu.clientHeight;
  menu.scrollLeft = entry.offsetLeft + entry.offsetWidth + MARGIN - menu.clientWidth;
}

fold(localStorage.getItem(FOLDED) === "1");
document.addEventListener("DOMContentLoaded", () => {
  fold(document.body.classList.contains("folded"));
  reveal(document.querySelector(".nav"), document.querySelector(".nav [aria-current]"));
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-fold]")) return;
  const isFolded = !document.body.classList.contains("folded");
  localStorage.setItem(FOLDED, isFolded ? "1" : "");
  fold(isFolded);
});
