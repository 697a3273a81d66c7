// Summaries for who listens instead of looking: what changed on the page, in a sentence, politely, and not often. Each
// number by itself would never let a screen reader come to an end.

const EVERY = 15000; // milliseconds between two sentences at least
const SOON = 2000; // until the first: what comes together is told together
const NOUNS = { list: "row", connections: "connection", subscribers: "subscription", jobs: "job", runs: "run" };
const LISTS = { queues: "queue", topics: "topic" };

const region = document.querySelector("[data-summary]");
const rows = new Map(); // by noun, the rows that changed
let sentences = new Map(); // the latest of each sort
let timer = 0;
let lastTold = -EVERY;

function nounOf(topic) {
  const [name, argument = ""] = topic.split(":");
  return name === "list" ? LISTS[argument.split("?")[0]] ?? NOUNS.list : NOUNS[name];
}

function schedule() {
  if (!region || timer) return;
  timer = setTimeout(tell, Math.max(SOON, lastTold + EVERY - performance.now()));
}

// A cell shows something else than before.
export function changed(cell) {
  if (cell.dataset.cell === "sentence" || cell.dataset.cell === "says") {
    say(cell.dataset.cell, cell.textContent);
    return;
  }
  const row = cell.closest("[data-row]");
  const noun = row && nounOf(row.closest("[data-topic]")?.dataset.topic ?? "");
  if (!noun) return;
  rows.set(noun, (rows.get(noun) ?? new Set()).add(row.dataset.row));
  schedule();
}

// A sentence worth hearing; of each sort the latest only.
export function say(sort, text) {
  sentences.set(sort, text.trim());
  schedule();
}

function tell() {
  timer = 0;
  lastTold = performance.now();
  const counts = [...rows].map(([noun, which]) => `${which.size} ${noun}${which.size === 1 ? "" : "s"} changed`);
  const parts = [...sentences.values(), counts.join(", ")].filter((each) => each);
  region.textContent = parts.map((each) => (/[.!?]$/.test(each) ? each : `${each}.`)).join(" ");
  rows.clear();
  sentences = new Map();
}
