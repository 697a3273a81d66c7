// The editor of a definition: rows of targets come and go, and each change is checked by the server.

const editor = document.querySelector("[data-editor]");

function check() {
  editor.dispatchEvent(new Event("check"));
}

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

editor.addEventListener("change", check);
