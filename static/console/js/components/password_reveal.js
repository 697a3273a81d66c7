// A button beside the label of each password, which shows what was typed, and hides it again.

function addButton(input) {
  const label = input.closest(".field")?.querySelector("label");
  if (!label) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "reveal";
  button.setAttribute("aria-controls", input.id);
  input.dataset.secret = "";  // form_recovery.js keeps none of it, also while it is a field of text
  const name = document.createElement("span");
  name.className = "hidden";
  name.textContent = ` ${label.textContent.toLowerCase()}`;
  const turn = (isShown) => {
    input.type = isShown ? "text" : "password";
    button.replaceChildren(isShown ? "Hide" : "Show", name);
  };
  button.addEventListener("click", () => turn(input.type === "password"));
  // Browsers offer what was sent in a field of text to whoever fills in the form next.
  input.form.addEventListener("submit", () => turn(false));
  turn(false);
  input.after(button);
}

document.querySelectorAll("input[type=password]").forEach(addButton);
