// The tour, which consists of stops. A button starts a stop, and the stop is done when the chat shows its result. If the
// user's own agents answer on this page, the tour is on a separate page with a scripted agent.
import { h, byId, icon, announce } from "/shared/dom.js";
import { state } from "/state.js";
import { post } from "/api.js";
import { failed } from "/notes.js";

let stops = [];
let show = () => {};

// onStart sets a function that is called when a stop starts. It must make the chat visible.
export function onStart(f) {
  show = f;
}

export const tourPage = () => h("div", { id: "tour" });

async function start(n) {
  show();
  try {
    await post("tour", { chat: 1, from: 1, stop: n });
  } catch (err) {
    failed(err);
  }
}

export function showTour(list) {
  const before = stops;
  stops = list;
  if (!list.length) return;
  list.forEach((stop, n) => {
    if (before[n] && before[n].state !== stop.state && stop.state === "done") {
      announce(`Stop ${n + 1} of ${list.length} is done: ${stop.title}`);
    }
  });
  draw();
}

// currentStop returns the index of the first stop that is not done. If all are done, it returns the number of stops.
function currentStop() {
  const n = stops.findIndex((stop) => stop.state !== "done");
  return n < 0 ? stops.length : n;
}

function draw() {
  const page = byId("tour");
  const focus = document.activeElement?.dataset?.stop;
  const now = currentStop();
  page.replaceChildren(
    h("div", { class: "progress", role: "img", "aria-label": `${stops.filter((s) => s.state === "done").length} of ${stops.length} stops done` },
      stops.map((stop) => h("i", { class: stop.state }))),
    h("ol", {}, stops.map((stop, n) => stopItem(stop, n, now))),
    ...(now === stops.length ? [finished()] : []));
  strip(now);
  if (focus === undefined) return;
  const again = document.querySelector(`[data-stop="${CSS.escape(focus)}"]`);
  (again && !again.disabled ? again : document.querySelector(`[data-stop="${now}"]:not(:disabled)`))?.focus();
}

function stopItem(stop, n, now) {
  const isNow = n === now;
  return h("li", { class: `stop ${stop.state} ${isNow ? "current" : ""}`, "aria-current": isNow ? "step" : undefined },
    h("span", { class: "number", "aria-hidden": "true" }, stop.state === "done" ? icon("check") : String(n + 1)),
    h("div", { class: "stop-head" }, h("h3", {}, stop.title),
      isNow ? null : h("button", { type: "button", class: "again", "data-stop": n, "aria-label": `${stop.state === "done" ? "Again" : "Show"}: ${stop.title}`, onclick: () => start(n) }, stop.state === "done" ? "again" : "show")),
    isNow || stop.state === "running" ? [h("p", {}, stop.text), stop.state === "running" && stop.todo ? h("p", { class: "todo" }, stop.todo) : null,
      stop.problem ? h("p", { class: "todo" }, stop.problem) : null] : null,
    isNow ? button(stop, n) : null);
}

function button(stop, n) {
  const running = stop.state === "running";
  return h("button", { type: "button", class: running ? "button quiet" : "button", "data-stop": n, onclick: () => start(n) }, running ? "Start again" : stop.button);
}

function finished() {
  const other = state.hello?.other;
  return h("div", { class: "finished" }, h("strong", {}, "That was the tour"), h("p", {}, nextStep(), " It takes five minutes."),
    h("p", {}, other ? h("a", { href: other }, "Try it here with your own agents") : ["With an agent that is logged in on this machine, ",
      h("code", {}, "ductor demo"), " talks to that one, too."]));
}

// nextStep returns a text about how to set up the user's own bot.
const nextStep = () => ["Now on your phone: run ", h("code", {}, "ductor setup"), " in a terminal."];

const invitation = "The tour shows all that there is, with a scripted agent. It takes five minutes and costs nothing.";
const toTour = () => h("a", { class: "button", href: state.hello.other }, "Take the tour");

// showInvitation shows a link to the page with the tour, if this page has no tour.
export function showInvitation() {
  if (state.hello.tour) return;
  byId("tour").replaceChildren(h("div", { class: "finished" }, h("strong", {}, "Your own agents answer here"), h("p", {}, invitation), toTour()));
  const el = byId("tour-strip");
  el.hidden = false;
  el.replaceChildren(h("div", {}, h("small", {}, "Tour"), h("strong", {}, "See all of it, with a scripted agent")), toTour());
}

// strip shows the tour in one line, for screens on which the panel is not beside the chat.
function strip(now) {
  const el = byId("tour-strip");
  el.hidden = state.chat !== 1;
  if (now === stops.length) return el.replaceChildren(h("div", {}, h("small", {}, "That was the tour"), h("div", {}, nextStep())));
  const stop = stops[now];
  el.replaceChildren(h("div", {}, h("small", {}, `Tour, ${now + 1} of ${stops.length}`), h("strong", {}, stop.title),
    stop.state === "running" && stop.todo ? h("span", {}, stop.todo) : null),
  h("button", { type: "button", class: stop.state === "running" ? "button quiet" : "button", onclick: () => start(now) }, stop.state === "running" ? "Again" : stop.button));
}
