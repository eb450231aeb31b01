// The messages of the chat that the page shows.
import { h, byId, announce } from "/shared/dom.js";
import { state, current, messagesOf, visible, userName, message } from "/state.js";
import { post } from "/api.js";
import { makeBubble } from "/bubble.js";
import { openMenu } from "/menu.js";
import { toast, failed, alertUser } from "/notes.js";
import { replyTo, editMessage, sendText } from "/composer.js";

const list = byId("messages");
const scroll = byId("scroll");
let follows = true; // true to keep the newest message visible

const act = {
  menu: (m, button) => openMenu(m, button, { reply: replyTo, edit: editMessage, react: act.react, remove }),
  command: (text) => sendText(text),
  jump: (id) => {
    const el = list.querySelector(`[data-id="${id}"]`);
    if (!el) return;
    el.scrollIntoView({ block: "center" });
    el.focus();
    el.classList.add("flash");
    setTimeout(() => el.classList.remove("flash"), 1200);
  },
  react: (m, emoji) => post("react", { chat: m.chat, from: state.from, message: m.id, text: emoji }).catch(failed),
  async press(m, b, button) {
    button.setAttribute("aria-busy", "true");
    try {
      const answer = await post("press", { chat: m.chat, from: state.from, message: m.id, data: b.callback_data });
      if (answer.alert) alertUser(answer.text);
      else if (answer.text) toast(answer.text);
    } catch (err) {
      failed(err);
    }
    button.removeAttribute("aria-busy");
  },
};

const remove = (m) => post("delete", { chat: m.chat, from: m.from, message: m.id }).catch(failed);

// showChat draws all messages of the chat.
export function showChat() {
  list.replaceChildren();
  for (const m of [...messagesOf(state.chat).values()].sort((a, b) => a.id - b.id)) {
    if (visible(m)) list.append(makeBubble(m, act));
  }
  arrange();
  follows = true;
  toEnd();
}

// showMessage draws a new or changed message.
export function showMessage(m, isNew) {
  if (!visible(m)) return;
  const old = list.querySelector(`:scope > [data-id="${m.id}"]`);
  const el = makeBubble(m, act);
  if (old) replaceKeepingFocus(old, el);
  else insert(el, m.id);
  arrange();
  if (isNew && !old) el.classList.add("fade-in");
  if (follows || (isNew && m.from === state.from)) toEnd();
  speak(m, isNew);
}

function replaceKeepingFocus(old, el) {
  const focused = document.activeElement;
  const key = old.contains(focused) ? focused.closest("[data-focus]")?.dataset.focus : null;
  const self = focused === old;
  el.tabIndex = old.tabIndex;
  old.replaceWith(el);
  if (self) el.focus({ preventScroll: true });
  else if (key) (el.querySelector(`[data-focus="${CSS.escape(key)}"]`) ?? el).focus({ preventScroll: true });
}

function insert(el, id) {
  let before = null;
  for (const other of [...list.children].reverse()) {
    if (Number(other.dataset.id) < id) break;
    before = other;
  }
  list.insertBefore(el, before);
}

export function removeMessage(id) {
  list.querySelector(`:scope > [data-id="${id}"]`)?.remove();
  arrange();
}

// arrange marks the first and the last of several consecutive messages by one user.
function arrange() {
  list.querySelector(".empty")?.remove();
  const items = [...list.children];
  if (!items.length) list.append(emptyNote());
  items.forEach((el, i) => {
    const m = message(Number(el.dataset.id));
    const before = i > 0 ? message(Number(items[i - 1].dataset.id)) : null;
    const after = i + 1 < items.length ? message(Number(items[i + 1].dataset.id)) : null;
    el.classList.toggle("first", !before || before.from !== m?.from);
    el.classList.toggle("last", !after || after.from !== m?.from);
  });
}

function emptyNote() {
  const chat = current();
  return h("li", { class: "empty" }, chat.kind === "private"
    ? [h("strong", {}, "This is your bot"), "Write to it as you would from your phone."]
    : [h("strong", {}, "A group with topics"), "Each topic is a conversation of its own. Write as another user to see who may do what."]);
}

// speak makes screen readers read an answer when it has stopped growing, and not after each edit.
const speaking = new Map();
function speak(m, isNew) {
  if (!m.bot || !state.live) return;
  if (isNew) announce(`${userName(m.from)} answers`);
  clearTimeout(speaking.get(m.id));
  speaking.set(m.id, setTimeout(() => {
    speaking.delete(m.id);
    const now = message(m.id);
    if (!now) return;
    const keys = (now.keyboard ?? []).flat().map((b) => b.text);
    announce(`${userName(now.from)}: ${now.text.slice(0, 600)}${keys.length ? `. Buttons: ${keys.join(", ")}` : ""}`);
  }, 2500));
}

function toEnd() {
  scroll.scrollTop = scroll.scrollHeight;
}

scroll.addEventListener("scroll", () => {
  follows = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
  byId("to-end").hidden = follows;
}, { passive: true });
byId("to-end").addEventListener("click", () => { follows = true; toEnd(); });
list.addEventListener("load", () => { if (follows) toEnd(); }, true); // pictures change their size when they have loaded
new ResizeObserver(() => { if (follows) toEnd(); }).observe(scroll);

// The arrow keys move the focus from message to message.
scroll.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowUp" && event.key !== "ArrowDown" && event.key !== "Home" && event.key !== "End") return;
  const items = [...list.querySelectorAll(".message:not(.service)")];
  const at = items.indexOf(document.activeElement);
  if (!items.length || (at < 0 && document.activeElement !== scroll)) return;
  event.preventDefault();
  const to = { ArrowUp: at < 0 ? items.length - 1 : at - 1, ArrowDown: at + 1, Home: 0, End: items.length - 1 }[event.key];
  items[Math.max(0, Math.min(to, items.length - 1))]?.focus();
});
