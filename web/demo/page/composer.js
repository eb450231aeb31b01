// The form with which users send text, commands, files and voice messages.
import { h, byId, icon, iconButton } from "/shared/dom.js";
import { state, current, summary } from "/state.js";
import { post, upload } from "/api.js";
import { failed, toast } from "/notes.js";
import { commandList } from "/commands.js";
import { recorder } from "/voice.js";

const form = byId("composer");
const input = h("textarea", { id: "input", rows: 1, placeholder: "Message", "aria-label": "Message", role: "combobox", "aria-expanded": "false", "aria-autocomplete": "list", "aria-controls": "commands" });
const picker = h("input", { type: "file", multiple: true, hidden: true, tabIndex: -1, "aria-label": "Files to send" });
const context = h("div", { class: "context", hidden: true });
const writeAs = h("label", { class: "write-as", hidden: true }, "Write as ", h("select", { id: "from", onchange: (event) => {
  state.from = Number(event.target.value);
  document.dispatchEvent(new CustomEvent("user"));
} }));
const send = iconButton("send", "Send", { type: "submit", class: "icon-button send" });
const voice = recorder((blob) => sendFiles([new File([blob], "voice.webm", { type: blob.type })], "voice"));
const commands = commandList(input, (text) => sendText(text));
let about = null; // the message to which the user replies, or which the user edits

form.append(commands.element, writeAs, context, h("div", { class: "composer-box" },
  iconButton("attach", "Send files or pictures", { onclick: () => picker.click() }), picker, input, voice.button, send));

const to = () => ({ chat: state.chat, topic: current().forum ? state.topic : 0, from: state.from });

export async function sendText(text) {
  const was = about;
  const body = was?.edits ? { ...to(), message: was.message.id, text } : { ...to(), text, replyTo: was?.message.id ?? 0 };
  dropContext();
  try {
    await post(was?.edits ? "edit" : "send", body);
  } catch (err) {
    failed(err);
    restore(text, was);
  }
}

async function sendFiles(files, kind = "") {
  const was = about;
  const text = kind === "voice" ? "" : input.value.trim();
  if (kind !== "voice") clear();
  dropContext();
  try {
    await upload({ ...to(), kind, text, replyTo: was && !was.edits ? was.message.id : 0 }, [...files].slice(0, 10));
    if (files.length > 10) toast("Telegram takes ten files at once; the others were left out.", true);
  } catch (err) {
    failed(err);
    restore(text, was);
  }
}

// restore shows a text that could not be sent again. It does not replace what the user has typed meanwhile.
function restore(text, was) {
  if (was && !about) showContext(was);
  input.value = [text, input.value.trim()].filter(Boolean).join("\n");
  fit();
}

function submit() {
  const text = input.value.trim();
  if (!text) return;
  clear();
  sendText(text);
}

function clear() {
  input.value = "";
  fit();
  commands.close();
}

function fit() {
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight, 220)}px`;
}

export function replyTo(m) {
  showContext({ message: m, edits: false });
}

export function editMessage(m) {
  showContext({ message: m, edits: true });
  input.value = m.text;
  fit();
}

function showContext(next) {
  about = next;
  const m = about.message;
  context.replaceChildren(h("div", {}, h("strong", {}, about.edits ? "Edit message" : `Reply to ${m.name}`), h("span", {}, summary(m))),
    iconButton("close", "Cancel", { onclick: () => { if (about?.edits) clear(); dropContext(); input.focus(); } }));
  context.hidden = false;
  input.focus();
}

function dropContext() {
  about = null;
  context.hidden = true;
}

// showComposer adapts the form to the chat.
export function showComposer() {
  const users = state.hello.users.filter((user) => current().users.includes(user.id));
  if (!current().users.includes(state.from)) state.from = users[0].id;
  const select = writeAs.querySelector("select");
  select.replaceChildren(...users.map((user) => h("option", { value: user.id, selected: user.id === state.from }, `${user.name} (${user.note})`)));
  writeAs.hidden = users.length < 2;
  dropContext();
}

export const focusComposer = () => input.focus();

form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
input.addEventListener("input", () => { fit(); commands.suggest(); });
input.addEventListener("keydown", (event) => {
  if (commands.key(event)) return;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  } else if (event.key === "Escape" && about) {
    if (about.edits) clear();
    dropContext();
  }
});
picker.addEventListener("change", () => { if (picker.files.length) sendFiles(picker.files); picker.value = ""; });
input.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  sendFiles(event.clipboardData.files);
});
const main = form.closest("main");
main.addEventListener("dragover", (event) => event.preventDefault());
main.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) sendFiles(event.dataTransfer.files);
});
