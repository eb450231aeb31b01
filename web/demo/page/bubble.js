// The element of one message.
import { h, icon, iconButton, clock, bytes, byId } from "/shared/dom.js";
import { fileURL } from "/api.js";
import { failed } from "/notes.js";
import { renderText, renderPrompt } from "/text.js";
import { renderRich } from "/rich.js";
import { state, message, summary, userName, current } from "/state.js";

// makeBubble returns the element of a message. act contains the functions that the message's buttons call.
export function makeBubble(m, act) {
  if (m.service) {
    return h("li", { class: "message service", "data-id": m.id }, h("span", {}, `${m.name}: ${m.service}`));
  }
  const out = !m.bot && m.from === state.from;
  const bubble = h("div", { class: "bubble" },
    (current().kind !== "private" && !out) || (!out && !m.bot) ? h("span", { class: "sender" }, m.name) : null,
    m.replyTo ? replyOf(m, act) : null,
    m.media ? media(m) : null,
    m.rich?.length ? h("div", { class: "text rich" }, renderRich(m.rich, `${m.chat}/${m.id}`, act.command))
      : m.text ? h("div", { class: "text" }, m.bot ? renderText(m.text, m.entities, `${m.chat}/${m.id}`, act.command) : renderPrompt(m, act.command)) : null,
    h("span", { class: "meta" }, m.pinned ? h("span", {}, "pinned") : null, m.edited ? h("span", {}, "edited") : null,
      h("time", { dateTime: new Date(m.date).toISOString() }, clock(m.date))),
    m.reactions?.length ? reactions(m, act) : null);
  return h("li", { class: `message ${out ? "out" : "in"}`, "data-id": m.id, tabindex: "-1", "aria-label": `${out ? "You" : m.name}, ${clock(m.date)}` },
    bubble,
    m.keyboard?.length ? keyboard(m, act) : null,
    iconButton("more", "Actions", { class: "icon-button message-menu", "aria-haspopup": "menu", "aria-expanded": "false", "data-focus": "menu",
      onclick: (event) => act.menu(m, event.currentTarget) }));
}

function replyOf(m, act) {
  const to = message(m.replyTo);
  return h("button", { type: "button", class: "reply", onclick: () => act.jump(m.replyTo) },
    h("strong", {}, to ? to.name : "Message"), h("span", {}, to ? summary(to) : "deleted"));
}

function media(m) {
  const { kind, id, name, mime, size } = m.media;
  if (kind === "photo") {
    const img = fill(h("img", { alt: m.text || name || "Photo" }), id);
    return h("button", { type: "button", class: "photo", "aria-label": `Show picture ${name}`, onclick: () => showPicture(img.src, img.alt) }, img);
  }
  if (kind === "voice" || kind === "audio" || /^audio\//.test(mime) || /\.(mp3|ogg|oga|opus|wav|m4a)$/i.test(name)) {
    return h("div", {}, kind === "voice" ? null : h("strong", {}, name), fill(h("audio", { controls: true, preload: "metadata", "aria-label": name || "Voice message" }), id));
  }
  return h("button", { type: "button", class: "file", title: "Save this file", onclick: () => save(id, name || "file") },
    h("span", { class: "file-icon" }, icon("file")), h("span", {}, h("strong", {}, name || "file"), h("small", {}, bytes(size))));
}

// fill makes an element show a file as soon as the page has loaded the file.
function fill(el, id) {
  fileURL(id).then((url) => { el.src = url; }, () => { el.title = "This file is gone"; });
  return el;
}

async function save(id, name) {
  try {
    h("a", { href: await fileURL(id), download: name }).click();
  } catch (err) {
    failed(err);
  }
}

function showPicture(url, alt) {
  const dialog = byId("picture");
  dialog.replaceChildren(h("img", { src: url, alt }));
  dialog.onclick = () => dialog.close();
  dialog.showModal();
}

function reactions(m, act) {
  const count = new Map();
  for (const r of m.reactions) count.set(r.emoji, [...(count.get(r.emoji) ?? []), r.from]);
  return h("div", { class: "reactions" }, [...count].map(([emoji, who]) => {
    const mine = who.includes(state.from);
    return h("button", {
      type: "button", "aria-pressed": String(mine), "data-focus": `reaction ${emoji}`, title: who.map(userName).join(", "),
      "aria-label": `${emoji} by ${who.map(userName).join(", ")}`, onclick: () => act.react(m, mine ? "" : emoji),
    }, emoji, who.length > 1 ? ` ${who.length}` : "");
  }));
}

function keyboard(m, act) {
  return h("div", { class: "keyboard", role: "group", "aria-label": "Buttons of this message" }, m.keyboard.map((row) => h("div", {}, row.map((b) => b.url
    ? h("a", { class: "key", href: b.url, target: "_blank", rel: "noopener noreferrer" }, b.text)
    : h("button", { type: "button", class: "key", "data-focus": `key ${b.text}`, onclick: (event) => act.press(m, b, event.currentTarget) }, b.text)))));
}
