// What pages do beyond HTML: forms of the board are sent in place, and a page that is left open follows the
// history. Without this script everything works by loading pages.
"use strict";

const live = document.getElementById("live");

// Puts the newest main part of this page in the place of the old one, and keeps what the reader has open.
async function refresh(response) {
  const answer = response || await fetch(location.href, { headers: { accept: "text/html" } });
  const text = await answer.text();
  const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  const main = document.querySelector("main");
  if (!next || !main) return;
  for (const old of main.querySelectorAll("details[id]")) {
    const same = next.querySelector("#" + CSS.escape(old.id));
    if (same) same.open = old.open;
  }
  main.replaceChildren(...next.childNodes);
}

// Somebody who writes is not disturbed.
function isBusy() {
  const field = document.activeElement;
  const fields = [...document.querySelectorAll("main input[type=text]")];
  return Boolean(field && field.closest("main form")) || fields.some((one) => one.value !== one.defaultValue);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form.label")) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter && event.submitter.name) fields.set(event.submitter.name, event.submitter.value);
  const row = form.closest("tr");
  try {
    const response = await fetch(form.action, { method: "POST", body: fields, headers: { accept: "text/html" } });
    if (!response.ok) throw new Error(String(response.status));
    await refresh(response);
    const again = row && document.getElementById(row.id);
    const button = again && again.querySelector("form.label button");
    if (button) button.focus();
  } catch {
    // The plain way shows what is wrong.
    form.classList.remove("label");
    form.requestSubmit(event.submitter);
  }
});

// A choice in a filter is taken at once.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form.filter[method=get]");
  if (form && event.target.matches("select, input[type=date]")) form.requestSubmit();
});

if (live && "EventSource" in window) {
  const events = new EventSource("/events");
  events.addEventListener("open", () => { live.textContent = "live"; });
  events.addEventListener("error", () => { live.textContent = "not connected"; });
  events.addEventListener("grown", () => {
    if (document.hidden || isBusy()) live.textContent = "new runs: load the page again";
    else refresh().catch(() => { live.textContent = "not connected"; });
  });
}
