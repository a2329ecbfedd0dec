// What every page does: theme, zone of times, filters, and following the tables.
import { drawLanes } from "./lanes.js";
import "./search.js";

const root = document.documentElement;

const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* a browser may forbid it */ } };

// --- Theme ---
const THEMES = { "": "Auto", light: "Light", dark: "Dark" };
const themeButton = document.getElementById("theme");

function showTheme() {
  const name = THEMES[root.dataset.theme ?? ""];
  themeButton.textContent = name;
  themeButton.setAttribute("aria-label", `Theme: ${name}; switch`);
}

themeButton.addEventListener("click", () => {
  const order = Object.keys(THEMES);
  const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  keep("theme", next);
  showTheme();
  drawCharts();
});
showTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts());

// --- Times ---
const zoneButton = document.getElementById("zone");
const two = (number) => String(number).padStart(2, "0");

function timeText(date) {
  if (Number.isNaN(date.getTime())) return "";
  if (root.dataset.zone !== "local") return date.toISOString().slice(0, 19).replace("T", " ");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}

function showTimes() {
  const isLocal = root.dataset.zone === "local";
  const zone = isLocal ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC";
  zoneButton.textContent = zone;
  for (const named of document.querySelectorAll("[data-zone]")) if (named !== root) named.textContent = zone;
  zoneButton.setAttribute("aria-label", isLocal ? `Times of ${zone}; switch to UTC` : "Times in UTC; switch to local time");
  for (const time of document.querySelectorAll("time[datetime]")) {
    const text = timeText(new Date(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
    time.title = time.dateTime;
  }
}

zoneButton.addEventListener("click", () => {
  root.dataset.zone = root.dataset.zone === "local" ? "utc" : "local";
  keep("zone", root.dataset.zone);
  showTimes();
  drawCharts();
});
showTimes();

// --- Filters: the address has what was chosen. A choice by pointer acts at once; keys go through the options, and what
// they chose acts with Enter or the button ---
let pointedAt = null;
document.addEventListener("pointerdown", (event) => { pointedAt = event.target.closest("select"); }, true);
document.addEventListener("keydown", (event) => {
  pointedAt = null;
  if (event.key !== "Enter" || !event.target.matches("select")) return;
  const form = event.target.closest(".filters.changed");
  if (form) { event.preventDefault(); form.requestSubmit(); }
}, true);
document.addEventListener("input", (event) => {
  const form = event.target.closest(".filters");
  if (form) hold(form, true);
});
document.addEventListener("change", (event) => {
  // A planned change has several parts, so it waits for its button.
  const form = event.target.closest(".filters:not(.change)");
  if (form && event.target === pointedAt) form.requestSubmit();
});

// What is chosen and not yet shown stays when the tables change meanwhile.
function hold(form, isChanged) {
  form.classList.toggle("changed", isChanged);
  form.toggleAttribute("hx-morph-skip", isChanged);
}

document.addEventListener("submit", (event) => {
  // Filters without a value stay out of the address.
  if (!event.target.matches(".filters")) return;
  for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
});
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll(".filters :disabled")) field.disabled = false;
});

// --- Ids that are copied: a button beside each ---
function showCopies() {
  if (!navigator.clipboard) return;
  for (const place of document.querySelectorAll("[data-copy]")) {
    if (place.nextElementSibling?.matches(".copy")) continue;
    const id = place.querySelector(".id") ?? place, text = id.title || id.textContent, button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", `Copy ${text.slice(0, 80)}`);
    button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); }, () => {}));
    place.after(button);
  }
}
showCopies();

// --- Ids in tables: one button goes to the id that is pointed at, or has the focus ---
const CARRYING = ["member", "client", "host", "group", "topic", "queue", "name", "rebalance", "rebalance_id", "finding"].map((kind) => `td.k-${kind}`).join();
const carried = document.createElement("button");
carried.type = "button";
carried.className = "copy carried";
carried.textContent = "copy";
let carriedId = "";

function carry(event) {
  const cell = event.target.closest?.(CARRYING), id = cell?.querySelector("[data-id], .id");
  if (!navigator.clipboard || !id || cell.contains(carried)) return;
  const whole = id.dataset.id ?? (id.title || id.textContent);
  carriedId = whole;
  carried.textContent = "copy";
  carried.setAttribute("aria-label", `Copy ${whole.slice(0, 80)}`);
  (id.closest("a") ?? id).after(carried);
}
document.addEventListener("pointerover", carry);
document.addEventListener("focusin", carry);
carried.addEventListener("click", () => navigator.clipboard.writeText(carriedId).then(() => { carried.textContent = "copied"; }, () => {}));

// --- Rebalances of one episode are one row: a button shows them ---
const unrolled = new Set();

function showUnrolled() {
  for (const button of document.querySelectorAll("[data-unrolls]")) {
    const isOpen = unrolled.has(button.dataset.unrolls);
    button.setAttribute("aria-expanded", String(isOpen));
    for (const row of button.closest("tbody").querySelectorAll(`[data-folded="${CSS.escape(button.dataset.unrolls)}"]`)) row.hidden = !isOpen;
  }
}
document.addEventListener("click", (event) => {
  const episode = event.target.closest("[data-unrolls]")?.dataset.unrolls;
  if (!episode) return;
  if (!unrolled.delete(episode)) unrolled.add(episode);
  showUnrolled();
});

// --- Long tables are folded: a button shows all of their rows ---
document.addEventListener("click", (event) => {
  const button = event.target.closest(".unfold");
  if (!button) return;
  const isWhole = button.previousElementSibling.classList.toggle("whole");
  button.textContent = isWhole ? "Fold" : button.dataset.text;
  button.setAttribute("aria-expanded", String(isWhole));
});

// --- Charts: what they need is loaded with the first of them ---
let charts = null;

async function drawCharts() {
  for (const place of document.querySelectorAll("[data-lanes]")) drawLanes(place, timeText);
  const places = [...document.querySelectorAll("[data-chart]")];
  if (!places.length) return;
  charts ??= await import("./charts.js");
  for (const place of places) charts.draw(place, timeText);
}

// --- Live: the tables' versions ---
const state = document.getElementById("live-state");

function showState(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = `live-state ${kind}`;
}

// Following the tables is not knowing the present: the page says whether that is known.
let isFollowing = false;

function showKnowledge() {
  const main = document.getElementById("live"), { knowledge } = main.dataset;
  if (!isFollowing) return;
  if (main.querySelector("[data-old]")) showState("out of date", "off");
  else showState(knowledge, knowledge === "live" ? "on" : "");
}

// The page keeps what it shows when it cannot be refreshed, and says so until it can.
function showOld() {
  const main = document.getElementById("live");
  if (!main.querySelector("[data-old]")) {
    const notice = document.createElement("p");
    notice.className = "notice blind";
    notice.dataset.old = "";
    notice.textContent = `This page could not be refreshed at ${timeText(new Date())} and is out of date: reload it to see why.`;
    main.prepend(notice);
  }
  showKnowledge();
}

function follow() {
  const { depends, versions } = document.body.dataset;
  if (versions === undefined) { state.hidden = true; return; }
  const names = new Set(depends.split(" "));
  const source = new EventSource(`/live?since=${encodeURIComponent(versions)}`);
  let pending = null;
  source.addEventListener("hello", () => { isFollowing = true; showKnowledge(); });
  source.addEventListener("tables", (event) => {
    if (!JSON.parse(event.data).changed.some((name) => names.has(name)) || pending) return;
    // Several tables change together: one look at all of them.
    pending = setTimeout(() => { pending = null; refresh(); }, 400);
  });
  source.onerror = () => {
    isFollowing = false;
    showState("reconnecting", "off");
    // A refusal ends the stream for the browser: it is tried again by hand.
    if (source.readyState === EventSource.CLOSED) { source.close(); setTimeout(follow, 5000); }
  };
  addEventListener("pagehide", () => source.close(), { once: true });
}

// What is recent moves on with the clock, also where no table changes.
const MINUTE_MS = 60_000, CHECK_MS = 10_000;
let refreshed = Date.now();

function refreshAsTimePasses() {
  if (!document.hidden && Date.now() - refreshed >= MINUTE_MS - CHECK_MS) refresh();
}

function refresh() {
  refreshed = Date.now();
  document.body.dispatchEvent(new Event("tables-changed"));
}

document.body.addEventListener("htmx:before:swap", (event) => {
  // An error must not take the page's content away.
  const status = event.detail?.ctx?.response?.status;
  if (status && status !== 200) { event.preventDefault(); showOld(); }
});
document.body.addEventListener("htmx:after:swap", () => { showTimes(); showCopies(); showUnrolled(); drawCharts(); showKnowledge(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

if (document.body.dataset.versions !== undefined) {
  setInterval(refreshAsTimePasses, CHECK_MS);
  document.addEventListener("visibilitychange", refreshAsTimePasses);
}
drawCharts();
follow();
