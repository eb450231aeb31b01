// The panel with internals: events of turns, calls of the API with their budgets, and processes.
import { h, byId, clock, bytes } from "/shared/dom.js";
import { tourPage } from "/tour.js";

const keep = 300; // maximum number of lines in a list
const pages = {};

// makePanel creates the tabs.
export function makePanel() {
  const tabs = [["tour", "Tour"], ["events", "Events"], ["calls", "API calls"], ["agents", "Agents"]];
  byId("tabs").replaceChildren(...tabs.map(([name, title]) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `page-${name}`, onclick: () => select(name),
  }, title)));
  byId("tab-pages").replaceChildren(...tabs.map(([name]) => {
    pages[name] = h("div", { class: "tab-page", id: `page-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}`, tabindex: "0" }, contents[name]());
    return pages[name];
  }));
  select(tabs[0][0]);
}

export function select(name) {
  for (const tab of byId("tabs").children) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  for (const [other, page] of Object.entries(pages)) page.hidden = other !== name;
}

byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...byId("tabs").children];
  const next = tabs.at((tabs.indexOf(document.activeElement) + step) % tabs.length);
  next.click();
  next.focus();
});

const contents = {
  tour: tourPage,
  events: () => [
    h("p", { class: "muted" }, "What agents report while they work, as ductor reads it. The chat shows the part that matters."),
    h("ol", { class: "log", id: "events" })],
  calls: () => [
    h("h3", {}, "Budgets"),
    h("p", { class: "muted" }, "How many calls Telegram takes now. ductor learns each budget from the answers."),
    h("div", { id: "budgets" }),
    h("h3", {}, "Calls"),
    h("ol", { class: "log", id: "calls" })],
  agents: () => [
    h("p", { class: "muted" }, "Processes of agents on this machine. An idle one is kept for the next message."),
    h("div", { id: "processes" })],
};

function prepend(id, ...items) {
  const list = byId(id);
  list.prepend(...items.reverse());
  while (list.children.length > keep) list.lastElementChild.remove();
}

let turn = "";

export function addEvent(e) {
  const kind = e.kind.split(" ")[0];
  const line = h("li", {}, h("time", {}, clock(e.at)), h("strong", {}, h("span", { class: `kind ${kind}` }, e.kind)), h("span", {}),
    e.text ? h("span", { class: "detail" }, e.text) : null);
  if (e.turn !== turn) prepend("events", h("li", { class: "new-turn" }, `Turn of ${e.chat}`));
  turn = e.turn;
  byId("events").prepend(line);
}

export function addCall(c) {
  prepend("calls", h("li", {}, h("time", {}, clock(c.at)),
    h("strong", { class: c.ok ? "" : "bad" }, c.method, c.ok ? "" : ` ${c.code || "no answer"} ${c.why}`),
    h("span", { class: "took" }, `${c.took.toFixed(1)} ms`),
    c.detail ? h("span", { class: "detail" }, c.detail) : null));
}

export function showBudgets(list) {
  byId("budgets").replaceChildren(...(list ?? []).map((b) => {
    const rate = b.every >= 1 ? `1 every ${round(b.every)} s` : `${Math.round(1 / b.every)} a second`;
    const slowed = b.every > b.usual * 1.01 ? `, slowed down from 1 every ${round(b.usual)} s` : "";
    const note = b.silence > 0 ? `silent for ${b.silence} s` : `${Math.floor(Math.max(b.tokens, 0))} of ${b.burst} now, then ${rate}${slowed}`;
    const label = b.name === "chat 1" ? "this chat" : b.name;
    return h("div", { class: "meter" }, h("div", { class: "meter-head" }, h("span", {}, label), h("span", {}, note)),
      h("progress", { max: b.burst, value: Math.max(b.tokens, 0), "aria-label": `Budget of ${label}` }));
  }));
}

const round = (n) => Math.round(n * 100) / 100;

export function showProcesses(list) {
  const cards = (list ?? []).map((p) => h("div", { class: "card" }, h("strong", {}, p.agent), h("dl", {},
    h("dt", {}, "state"), h("dd", {}, `${p.state} since ${clock(Date.parse(p.started))}`),
    h("dt", {}, "pid"), h("dd", {}, String(p.pid)),
    h("dt", {}, "memory"), h("dd", {}, p.memory ? bytes(p.memory) : "unknown"),
    h("dt", {}, "conversation"), h("dd", {}, p.chat))));
  byId("processes").replaceChildren(...(cards.length ? cards : [h("p", { class: "muted" }, list ? "No agent runs." : "ductor restarts…")]));
}
