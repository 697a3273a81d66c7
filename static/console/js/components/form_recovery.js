// A form that was filled in when the session expired: kept in this tab until the same user has signed in again, then
// filled in again. Nothing is sent by itself. Passwords, codes, files and hidden fields are never kept.

const KEY = "sluice.form";
const LIFE = 30 * 60 * 1000; // milliseconds a form is kept at most
const MOST = 1024 * 1024; // characters: a browser gives all of a tab a few megabytes
const UNKEPT = "[type=hidden], [type=password], [type=file], [type=submit], [autocomplete=one-time-code], [data-secret]";

const user = document.body.dataset.user;
const here = location.pathname + location.search;
let touched = null; // the form that was worked in last

function fieldsOf(form) {
  return [...form.elements].filter((field) => field.name && field.matches("input, select, textarea") && !field.matches(UNKEPT));
}

function isTick(field) {
  return field.type === "checkbox" || field.type === "radio";
}

function keep() {
  if (!user || !touched?.isConnected) return;
  const place = [...document.forms].indexOf(touched);
  const fields = fieldsOf(touched).map((field) => (isTick(field) ? [field.name, field.value, field.checked] : [field.name, field.value]));
  const kept = JSON.stringify({ user, page: here, at: Date.now(), place, fields });
  if (kept.length > MOST) return;
  try {
    sessionStorage.setItem(KEY, kept);
  } catch { // there is no room
    sessionStorage.removeItem(KEY);
  }
}

function taken() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

// Rows that a page adds one by one are added until there are as many as there were.
function fieldAt(form, name, number) {
  const named = () => fieldsOf(form).filter((field) => field.name === name);
  for (let before = -1; named().length <= number && named().length > before;) {
    before = named().length;
    form.querySelector(`[data-adds~="${CSS.escape(name)}"]`)?.click();
  }
  return named()[number];
}

function fill(form, fields) {
  const counts = {};
  for (const [name, value, isTicked] of fields) {
    const number = counts[name] ?? 0;
    counts[name] = number + 1;
    const field = fieldAt(form, name, number);
    if (!field) continue;
    if (isTicked === undefined) field.value = value;
    else field.checked = isTicked;
    const isAsItWas = isTick(field) ? field.checked === field.defaultChecked : !field.value || field.value === field.defaultValue;
    if (!isAsItWas && !field.matches("select")) field.closest("details")?.setAttribute("open", ""); // what was written is seen
  }
  for (const type of ["input", "change"]) form.elements[0]?.dispatchEvent(new Event(type, { bubbles: true }));
}

function say(text) {
  const note = document.createElement("div");
  note.className = "note note-warning";
  note.setAttribute("role", "status");
  note.textContent = text;
  document.getElementById("main").prepend(note);
}

function restore() {
  const kept = taken();
  if (!kept) return;
  if (!user) { // signed out, and not by the user: the next page shows the form
    sessionStorage.setItem(KEY, JSON.stringify({ ...kept, isCut: true }));
    return;
  }
  const isOurs = kept.isCut && kept.user === user && Date.now() - kept.at < LIFE;
  if (isOurs && kept.page !== here && !kept.isLed) { // where it was sent to is no page, or another one
    sessionStorage.setItem(KEY, JSON.stringify({ ...kept, isLed: true }));
    location.replace(kept.page);
    return;
  }
  sessionStorage.removeItem(KEY);
  const form = isOurs && kept.page === here ? document.forms[kept.place] : null;
  if (!form) return;
  fill(form, kept.fields);
  touched = form;
  say("Your session expired. The form was restored, nothing was submitted. Check it and submit again.");
}

for (const type of ["input", "change", "submit"]) {
  document.addEventListener(type, (event) => {
    const form = type === "submit" ? event.target : event.target.form;
    if (!form) return;
    const said = (name) => form.getAttribute(name) ?? ""; // a field may be called so, too
    if (said("method") === "post" && form.closest("main")) touched = form;
    if (type === "submit" && said("action").endsWith("/logout/")) touched = null;
  });
}
window.addEventListener("pagehide", keep);

restore();
