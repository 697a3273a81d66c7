// The list of runs: a choice of the filter asks at once, and two runs of one kind may be compared.

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  if (event.target.matches('input[name="run"]')) showChoice();
});

function showChoice() {
  const boxes = [...document.querySelectorAll('input[name="run"]')];
  const chosen = boxes.filter((box) => box.checked);
  for (const box of boxes) {
    box.disabled = !box.checked && chosen.length > 0 && (chosen.length > 1 || box.dataset.kind !== chosen[0].dataset.kind);
  }
  document.querySelector("[data-compare]").disabled = chosen.length !== 2;
}

if (document.querySelector("[data-compare]")) showChoice(); // a browser keeps ticks over a reload
