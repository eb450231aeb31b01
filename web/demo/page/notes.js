// Short messages at the bottom of the chat, and alerts that must be closed.
import { byId } from "/shared/dom.js";

let hiding;

export function toast(text, bad = false) {
  const el = byId("toast");
  el.textContent = text;
  el.classList.toggle("bad", bad);
  el.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { el.hidden = true; }, 4500);
}

export const failed = (err) => toast(err.message || "That did not work.", true);

export function alertUser(text) {
  byId("alert-text").textContent = text;
  byId("alert").showModal();
}
