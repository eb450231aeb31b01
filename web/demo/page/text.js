// The elements of texts with entities. Offsets are in UTF-16 units, as in JavaScript.
import { h, announce } from "/shared/dom.js";
import { directives } from "/state.js";

// Keys of the parts that the user has opened, so that they stay open when their message is edited.
export const opened = new Set();

// renderText returns the nodes of a text. key identifies the message. A press of a command calls onCommand.
export function renderText(text, entities, key, onCommand) {
  const sorted = [...(entities ?? [])].sort((a, b) => a.offset - b.offset || b.length - a.length);
  return nodes(text, 0, text.length, sorted, key, onCommand);
}

function nodes(text, from, to, entities, key, onCommand) {
  const out = [];
  let at = from;
  const plain = (end) => {
    let part = text.slice(at, end);
    if (part.startsWith("\n") && out.at(-1)?.dataset?.block) part = part.slice(1);
    if (part.endsWith("\n") && blockAt(end)) part = part.slice(0, -1); // a block starts a new line anyway
    if (part) out.push(part);
  };
  const blockAt = (at) => entities.some((e) => e.offset === at && blocks.has(e.type));
  for (let i = 0; i < entities.length;) {
    const e = entities[i];
    const end = Math.min(e.offset + e.length, to);
    const inner = [];
    let next = i + 1;
    while (next < entities.length && entities[next].offset < end) inner.push(entities[next++]);
    if (e.offset > at) plain(e.offset);
    out.push(element(e, text.slice(e.offset, end), () => nodes(text, Math.max(e.offset, at), end, inner, key, onCommand), `${key}:${e.offset}`, onCommand));
    at = end;
    i = next;
  }
  if (at < to) plain(to);
  return out;
}

const blocks = new Set(["pre", "blockquote", "expandable_blockquote"]);
const simple = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code" };

function element(e, text, inner, key, onCommand) {
  if (simple[e.type]) return h(simple[e.type], {}, inner());
  switch (e.type) {
    case "pre": return codeBlock(text, e.language);
    case "text_link": return link(e.url, inner());
    case "url": return link(/^[a-z]+:/i.test(text) ? text : `http://${text}`, inner());
    case "email": return link(`mailto:${text}`, inner());
    case "spoiler": return spoiler(inner(), key);
    case "blockquote": return h("blockquote", { class: "quote", "data-block": "1" }, inner());
    case "expandable_blockquote": return expandable(inner(), key, text);
    case "bot_command": return h("button", { type: "button", class: "bot-command", onclick: () => onCommand(text) }, text);
    default: return h("span", {}, inner());
  }
}

function link(url, inner) {
  const safe = /^(https?|ftp|mailto|tg|ton):/i.test(url);
  return safe ? h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, inner) : h("span", {}, inner);
}

export function codeBlock(text, language) {
  const copy = h("button", { type: "button", class: "copy", onclick: async () => {
    const done = await copyText(text);
    copy.textContent = done ? "Copied" : "Not copied";
    announce(copy.textContent);
    setTimeout(() => { copy.textContent = "Copy"; }, 1600);
  } }, "Copy");
  return h("figure", { class: "block", "data-block": "1" },
    h("header", {}, h("span", {}, language || "code"), copy),
    h("pre", { tabindex: "0" }, h("code", {}, text.replace(/\n$/, ""))));
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // the browser does not allow the page to write to the clipboard
  }
}

function spoiler(inner, key) {
  const el = h("span", { class: "spoiler", tabindex: "0", role: "button", "aria-label": "Hidden text; press to show" }, inner);
  const open = () => {
    opened.add(key);
    el.classList.add("open");
    for (const name of ["role", "tabindex", "aria-label"]) el.removeAttribute(name);
  };
  if (opened.has(key)) open();
  el.addEventListener("click", open);
  el.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  });
  return el;
}

function expandable(inner, key, text) {
  const long = text.split("\n").length > 3 || text.length > 180;
  const el = h("blockquote", { class: "quote", "data-block": "1" }, h("div", { class: "quote-text" }, inner));
  if (!long) return el;
  const toggle = h("button", { type: "button", class: "quote-toggle", "data-focus": `quote ${key}`, onclick: () => {
    if (opened.has(key)) opened.delete(key);
    else opened.add(key);
    show();
  } });
  const show = () => {
    const open = opened.has(key);
    el.classList.toggle("folded", !open);
    toggle.textContent = open ? "Show less" : "Show more";
    toggle.setAttribute("aria-expanded", open);
  };
  show();
  el.append(toggle);
  return el;
}

// renderPrompt is like renderText, for prompts. It folds the directives for the scripted agent.
export function renderPrompt(m, onCommand) {
  const found = m.text.match(directives);
  if (!found) return renderText(m.text, m.entities, `${m.chat}/${m.id}`, onCommand);
  const rest = m.text.replace(directives, "").replace(/\s+/g, " ").trim();
  return [rest, h("details", { class: "script" }, h("summary", {}, "script"), h("code", {}, found.join("\n")))];
}
