// Connects the parts of the page with the stream of events.
import { byId, icon, h } from "/shared/dom.js";
import { applyTheme, themeButton } from "/shared/theme.js";
import { listen } from "/api.js";
import { state, begin, messagesOf } from "/state.js";
import { showChat, showMessage, removeMessage } from "/chat.js";
import { showComposer, focusComposer } from "/composer.js";
import { showChats, showTopics, showHead, onChoose } from "/sidebar.js";
import { makePanel, addEvent, addCall, showBudgets, showProcesses } from "/panel.js";
import { showTour, showInvitation, onStart } from "/tour.js";
import { alertUser, toast } from "/notes.js";

const app = byId("app");
const narrow = matchMedia("(max-width: 1180px)");

applyTheme();
for (const [id, name] of [["theme", "sun"], ["back", "back"], ["panel-toggle", "panel"], ["panel-close", "close"], ["to-end", "down"]]) {
  byId(id).append(icon(name));
}
themeButton(byId("theme"));

function choose(chat, topic) {
  state.chat = chat;
  state.topic = topic;
  app.dataset.view = "chat";
  showAll();
  focusComposer();
}

function showAll() {
  showComposer();
  showChats();
  showTopics();
  showHead();
  showChat();
}

function showPanel(open) {
  app.classList.toggle("no-panel", !open);
  byId("panel-toggle").setAttribute("aria-expanded", String(open));
}

onChoose(choose);
onStart(() => {
  if (state.chat !== 1) choose(1, 0);
  if (narrow.matches) showPanel(false);
});
byId("back").addEventListener("click", () => {
  app.dataset.view = "list";
  byId("chats").querySelector("[aria-current=true]")?.focus();
});
byId("panel-toggle").addEventListener("click", () => {
  const open = app.classList.contains("no-panel");
  showPanel(open);
  if (open && narrow.matches) byId("panel-close").focus();
});
byId("panel-close").addEventListener("click", () => { showPanel(false); byId("panel-toggle").focus(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !narrow.matches || app.classList.contains("no-panel")) return;
  showPanel(false);
  byId("panel-toggle").focus();
});
document.addEventListener("user", showChat);
showPanel(!narrow.matches);

let drawing;
// soon redraws the list of chats and the head once for all events since the last frame.
function soon() {
  drawing ??= requestAnimationFrame(() => {
    drawing = undefined;
    showChats();
    showHead();
  });
}

listen({
  hello(hello) {
    begin(hello);
    state.live = false;
    makePanel();
    showInvitation();
    byId("where").replaceChildren("Agents work in ", h("code", {}, hello.dir), h("br"), hello.version);
    showAll();
    if (document.activeElement === document.body) focusComposer();
    setTimeout(() => { state.live = true; }, 1500);
  },
  chat(chat) {
    const topics = JSON.stringify(state.chats.get(chat.id)?.topics);
    state.chats.set(chat.id, chat);
    if (chat.id === state.chat && topics !== JSON.stringify(chat.topics)) showTopics();
    soon();
  },
  message(m) {
    const isNew = !messagesOf(m.chat).has(m.id);
    messagesOf(m.chat).set(m.id, m);
    showMessage(m, isNew);
    soon();
  },
  gone({ chat, id }) {
    messagesOf(chat).delete(id);
    if (chat === state.chat) removeMessage(id);
    soon();
  },
  commands: (list) => { state.commands = list; },
  event: addEvent,
  call: addCall,
  budgets: showBudgets,
  processes: showProcesses,
  tour: showTour,
}, (why, forGood) => forGood ? alertUser(why) : toast(why, true));
