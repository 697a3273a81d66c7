// The editor of SQL: inserts names and examples, runs with Ctrl+Enter, and shows where an error is.

const form = document.getElementById("sql-form");
const statement = document.getElementById("statement");

document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-insert]");
  if (name) insert(name.dataset.insert);
  const example = event.target.closest("[data-statement]");
  if (example) showExample(example.dataset);
});

statement.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector(".button-main"));
  }
});

function insert(text) {
  const before = statement.value.slice(0, statement.selectionStart);
  const gap = /[\w)\]']$/.test(before) ? " " : "";
  statement.focus();
  statement.setRangeText(gap + text, statement.selectionStart, statement.selectionEnd, "end");
}

function showExample({ statement: text, drawnAs: chart, x, y, series }) {
  statement.focus();
  statement.select();
  // The browser can undo what is inserted this way, but not what is assigned.
  if (!document.execCommand("insertText", false, text)) statement.value = text;
  for (const [field, value] of Object.entries({ chart, x, y, series })) form.elements[field].value = value;
}

function showError(line, column) {
  const lines = statement.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
  const word = /^\w+/.exec(statement.value.slice(start));
  statement.focus();
  statement.setSelectionRange(start, start + (word ? word[0].length : 1));
}

if (statement.dataset.line) showError(Number(statement.dataset.line), Number(statement.dataset.column));
