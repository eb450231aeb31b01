// The menu of a message: reply, react, copy, edit, delete.
import { h } from "/shared/dom.js";
import { state } from "/state.js";
import { copyText } from "/text.js";
import { toast } from "/notes.js";

const emojis = ["👍", "❤", "🔥", "👏", "🎉", "🤔", "👀"];
let open = null;

function close(focus = true) {
  if (!open) return;
  open.menu.remove();
  open.button.setAttribute("aria-expanded", "false");
  if (focus) open.button.focus();
  open = null;
}

export function openMenu(m, button, act) {
  if (open) return close();
  const mine = !m.bot && m.from === state.from;
  const item = (text, run, props = {}) => h("button", { type: "button", role: "menuitem", onclick: () => { close(); run(); }, ...props }, text);
  const menu = h("div", { class: "menu", role: "menu", "aria-label": "Actions of this message" },
    h("div", { class: "row", role: "none" }, emojis.map((emoji) => item(emoji, () => act.react(m, emoji), { "aria-label": `React with ${emoji}` }))),
    item("Reply", () => act.reply(m)),
    item("Copy text", async () => toast(await copyText(m.text) ? "Copied" : "The browser does not let the page copy", false)),
    mine && m.text ? item("Edit", () => act.edit(m)) : null,
    mine ? item("Delete", () => act.remove(m)) : null);
  document.body.append(menu);
  const at = button.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - menu.offsetWidth - 8));
  const top = at.bottom + menu.offsetHeight > innerHeight - 8 ? at.top - menu.offsetHeight : at.bottom;
  menu.style.left = `${left}px`;
  menu.style.top = `${Math.max(8, top)}px`;
  button.setAttribute("aria-expanded", "true");
  open = { menu, button };
  menu.querySelector("button").focus();
  menu.addEventListener("keydown", (event) => {
    const items = [...menu.querySelectorAll("button")];
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) {
      event.preventDefault();
      items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Tab") {
      close();
    }
  });
}

document.addEventListener("pointerdown", (event) => {
  if (open && !open.menu.contains(event.target) && !open.button.contains(event.target)) close(false);
});
