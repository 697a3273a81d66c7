// The API's description in the user's theme: Swagger's viewer has colours for the dark, and asks nobody which to show.
// Its headings begin below a level that it leaves out: each is announced one level higher.

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  root.classList.toggle("dark-mode", root.dataset.theme === "dark" || (root.dataset.theme !== "light" && dark.matches));
}

function level() {
  for (const heading of document.querySelectorAll("#swagger-ui :is(h3, h4, h5):not([aria-level])")) {
    heading.setAttribute("aria-level", Number(heading.tagName[1]) - 1);
  }
}

dark.addEventListener("change", follow);
follow();
new MutationObserver(level).observe(root, { childList: true, subtree: true });
