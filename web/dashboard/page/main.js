// Requests the overview every few seconds and shows it.
import { add, byId, bytes, h, icon } from "/shared/dom.js";
import { applyTheme, themeButton } from "/shared/theme.js";
import { ask } from "/shared/ask.js";
import { plot } from "/plot.js";

const every = 5000;

applyTheme();
byId("theme").append(icon("sun"));
themeButton(byId("theme"));

const count = (n) => n >= 1e6 ? `${(n / 1e6).toFixed(1)}M` : n >= 1e4 ? `${(n / 1e3).toFixed(0)}k` : String(n);
const money = (n) => `$${n.toFixed(2)}`;
const when = (t) => t ? new Date(t).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false }) : "–";
const mark = (text, kind) => h("span", { class: `mark ${kind}` }, text);

function fill(id, items, nothing) {
  const at = byId(id);
  at.replaceChildren();
  add(at, items.length > 0 ? items : [h(at.tagName === "UL" ? "li" : "p", { class: "empty" }, nothing)]);
}

function facts(pairs) {
  return h("dl", {}, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

// table returns a table. On a phone, the name of the column precedes each cell.
function table(id, label, columns, rows, nothing) {
  if (rows.length === 0) return fill(id, [], nothing);
  fill(id, [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, c)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { "data-name": columns[i] }, h("span", {}, cell))))))))]);
}

function state(c) {
  if (c.running) return mark("works", "good");
  return c.queued ? mark("waits", "warn") : mark("idle", "");
}

function show(o) {
  const cards = (list) => list.map((p) => h("li", { class: "card" }, h("h3", {}, mark(p.ok ? "ok" : "look", p.ok ? "good" : "bad"), p.name), h("p", {}, p.text)));
  fill("health", cards(o.health), "Nothing is known.");
  fill("plots", [
    plot("Turns", o.days, (d) => d.turns, count), plot("Tokens", o.days, (d) => d.tokens, count), plot("Cost", o.days, (d) => d.cost, money)]);
  fill("conversations", o.conversations.map((c) => h("li", { class: "card" },
    h("h3", {}, state(c), c.title || c.name), h("p", {}, c.title ? c.name : "", c.dir ? ` ${c.dir}` : ""),
    facts([["last used", when(c.used)], ["queued", count(c.queued)], ["turns in 30 days", count(c.turns)], ["tokens", count(c.tokens)], ["cost", money(c.cost)]]))),
  "No conversation had a turn in the last 30 days.");
  fill("agents", cards(o.agents), "Agents are being asked.");
  table("processes", "Processes", ["Agent", "Chat", "Where", "PID", "Since", "Memory", "State"],
    o.processes.map((p) => [p.agent, p.chat || "–", p.where, String(p.pid), when(p.started), p.memory ? bytes(p.memory) : "–", p.state]), "No agent runs.");
  table("jobs", "Jobs", ["Job", "State", "Next", "Last", "Result", "Runs", "Cost"],
    o.jobs.map((j) => [j.name, j.state, when(j.next), when(j.last), j.failed ? mark(j.result, "bad") : j.result || "–", String(j.runs), money(j.cost)]), "There are no jobs.");
  table("approvals", "Approvals", ["Time", "Chat", "Agent", "What", "By", "Of"],
    [...o.waiting, ...o.decisions].map((d) => [when(d.at), d.chat, d.agent, d.what === "waits" ? mark("waits", "warn") : d.what, d.by || "–", d.of]),
    "Nothing was decided in the last 7 days.");
  byId("updated").textContent = `${o.version} · ${new Date(o.at).toLocaleTimeString([], { hour12: false })}`;
  byId("updated").className = "";
}

let last = "";

async function look() {
  try {
    const o = await (await ask("overview")).json();
    const now = JSON.stringify({ ...o, at: "" });
    if (now !== last && !document.activeElement?.closest(".scroll")) show(o); // do not redraw a table that the user is scrolling
    last = now;
    byId("main").setAttribute("aria-busy", "false");
  } catch (err) {
    byId("updated").textContent = `Not up to date: ${err.message}`;
    byId("updated").className = "bad";
  }
  setTimeout(look, every);
}

look();
