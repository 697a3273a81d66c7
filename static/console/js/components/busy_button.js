// A button that names what it does while the server works on it, which for passwords takes long on purpose.

document.addEventListener("submit", (event) => {
  const button = event.target.querySelector("[data-busy]");
  if (!button) return;
  if (button.ariaBusy === "true") {
    event.preventDefault();  // it is on its way already
    return;
  }
  button.dataset.idle = button.textContent;
  button.textContent = button.dataset.busy;
  button.ariaBusy = "true";
});

// Back to a page that the browser kept: nothing is on its way any more.
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("[data-idle]")) {
    button.textContent = button.dataset.idle;
    button.ariaBusy = null;
  }
});
