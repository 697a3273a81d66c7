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

// The tester opens with the leg's selector and the last message of the source, and gives the selector back.
const tester = document.getElementById("tester");
let tested = null;

async function testSelector(leg) {
  tested = leg.querySelector("[name=target_selector]");
  const kind = editor.dataset.kind === "compositeTopic" ? "topic" : "queue";
  const name = editor.querySelector("[name=name]").value.trim();
  const query = new URLSearchParams({ selector: tested.value, near: name ? `${kind}://${name}` : "" });
  if (editor.querySelector("[name=strict]")?.checked) query.set("strict", "on");
  await htmx.ajax("GET", `${editor.dataset.tester}?${query}`, { target: "#tester-body", swap: "innerHTML" });
  tester.showModal();
  tester.querySelector("[name=selector]").focus();
}

tester?.addEventListener("click", (event) => {
  if (!event.target.closest("[data-use-selector]")) return;
  tested.value = tester.querySelector("[name=selector]").value;
  tester.close();
});
tester?.addEventListener("close", () => {
  tested?.focus();
  check();
});

function start() {
  editor.addEventListener("click", (event) => {
    if (event.target.closest("[data-target-add]")) {
      const list = editor.querySelector("[data-targets]");
      list.append(editor.querySelector("[data-target-template]").content.cloneNode(true));
      list.lastElementChild.querySelector("[name=target_name]").focus();
    }
    const test = event.target.closest("[data-target-test]");
    if (test) testSelector(test.closest("[data-target]"));
    const remove = event.target.closest("[data-target-remove]");
    if (remove) {
      remove.closest("[data-target]").remove();
      check();
    }
  });
  editor.addEventListener("change", (event) => {
    const part = event.target.closest("[data-kinds]");
    if (part) showKinds(part);
    check();
  });
  for (const part of editor.querySelectorAll("[data-kinds]")) showKinds(part);
  // What was wrong with the form as it was sent is out of date once the form as it stands was checked.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "check") return;
    for (const error of editor.querySelectorAll(":is(.note-error, p.error)")) if (!error.closest("#check")) error.remove();
    for (const field of editor.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  });
  const first = editor.querySelector("input[type=text]");
  if (first && !first.value) first.focus();
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
