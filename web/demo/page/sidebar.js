// The list of chats, the topics, and the head of the chat.
import { h, byId, clock, iconButton } from "/shared/dom.js";
import { state, current, newest, summary } from "/state.js";
import { post } from "/api.js";
import { failed } from "/notes.js";

let choose = () => {};
const typingTime = 5000; // in milliseconds; Telegram shows "typing" as long

export function onChoose(f) {
  choose = f;
}

export function showChats() {
  byId("chats").replaceChildren(...[...state.chats.values()].map((chat) => {
    const last = newest(chat.id);
    return h("li", {}, h("button", { type: "button", class: "chat-row", "aria-current": String(chat.id === state.chat), onclick: () => choose(chat.id, 0) },
      h("span", { class: `avatar ${chat.kind === "private" ? "" : "group"}`, "aria-hidden": "true" }, chat.title[0]),
      h("strong", {}, chat.title), h("span", { class: "muted" }, last ? clock(last.date) : ""),
      h("span", { class: "last muted" }, last ? summary(last) : "No messages yet")));
  }));
}

export function showTopics() {
  const chat = current();
  const bar = byId("topics");
  bar.hidden = !chat.forum;
  if (!chat.forum) return;
  const topic = (id, name) => h("button", { type: "button", "aria-pressed": String(id === state.topic), onclick: () => choose(chat.id, id) }, name);
  bar.replaceChildren(topic(0, "General"), ...(chat.topics ?? []).map((t) => topic(t.id, t.closed ? `${t.name} (closed)` : t.name)),
    iconButton("plus", "New topic", { onclick: async () => {
      const name = prompt("The name of the new topic");
      if (!name?.trim()) return;
      try {
        const made = await post("topic", { chat: chat.id, from: state.from, text: name });
        choose(chat.id, made.id);
      } catch (err) {
        failed(err);
      }
    } }));
}

const doing = { typing: "typing", upload_photo: "sending a photo", upload_document: "sending a file", record_voice: "recording", upload_voice: "sending a voice message" };
let quiet;

export function showHead() {
  const chat = current();
  byId("title").textContent = chat.title;
  byId("avatar").textContent = chat.title[0];
  byId("avatar").className = `avatar ${chat.kind === "private" ? "" : "group"}`;
  const sub = byId("subtitle");
  const left = chat.typing ? chat.typing.at + typingTime - Date.now() : 0;
  const busy = left > 0 && (!chat.forum || chat.typing.topic === state.topic);
  sub.classList.toggle("busy", busy);
  sub.textContent = busy ? `${doing[chat.typing.kind] ?? "busy"}…` : chat.kind === "private" ? "bot" : `${chat.users.length} users and the bot`;
  clearTimeout(quiet);
  if (busy) quiet = setTimeout(showHead, left);
}
