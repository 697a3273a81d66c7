// The API's description in the user's theme: Swagger's viewer has colours for the dark, and asks nobody which to show.

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  root.classList.toggle("dark-mode", root.dataset.theme === "dark" || (root.dataset.theme !== "light" && dark.matches));
}

dark.addEventListener("change", follow);
follow();
