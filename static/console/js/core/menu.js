// The menu, folded to icons or not, with the entry of this page in sight. Loaded before the page is drawn, so that what
// was folded is so from the first moment.

const FOLDED = "sluice.folded";

function fold(isFolded) {
  document.body.classList.toggle("folded", isFolded);
  document.querySelector("[data-fold]")?.setAttribute("aria-expanded", String(!isFolded));
}

fold(localStorage.getItem(FOLDED) === "1");
document.addEventListener("DOMContentLoaded", () => {
  fold(document.body.classList.contains("folded"));
  document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-fold]")) return;
  const isFolded = !document.body.classList.contains("folded");
  localStorage.setItem(FOLDED, isFolded ? "1" : "");
  fold(isFolded);
});
