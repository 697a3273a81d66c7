// The editor of a definition: rows of targets come and go, two looks of one form, and each change is checked by the server.

const editor = document.querySelector("[data-editor]");

function check() {
  editor.dispatchEvent(new Event("check"));
}

// Of a strategy only the options that its kind has are shown.
function showKinds(part) {
  const kind = part.querySelector("select").value;
  for (const row of part.querySelectorAll("[data-for]")) row.hidden = !kind || !row.dataset.for.split(" ").includes(kind);
}

function start() {
  editor.addEventListener("click", (event) => {
    if (event.target.closest("[data-leg-add]")) {
      const list = editor.querySelector("[data-legs]");
      list.append(editor.querySelector("[data-leg-template]").content.cloneNode(true));
      list.lastElementChild.querySelector("[name=leg_name]").focus();
    }
    const remove = event.target.closest("[data-leg-remove]");
    if (remove) {
      remove.closest("[data-leg]").remove();
      check();
    }
  });
  editor.addEventListener("change", (event) => {
    const part = event.target.closest("[data-kinds]");
    if (part) showKinds(part);
    check();
  });
  for (const part of editor.querySelectorAll("[data-kinds]")) showKinds(part);
  editor.querySelector("input[type=text]:not([value])")?.focus();
  // What was typed stays when the look changes.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-look]");
    if (!link) return;
    event.preventDefault();
    editor.dataset.form = link.dataset.look;
    for (const other of link.parentElement.children) other.toggleAttribute("aria-current", other === link);
    link.setAttribute("aria-current", "true");
    history.replaceState({}, "", link.href);
  });
}

if (editor) start();
