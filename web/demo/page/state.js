// The state of the page: chats, their messages, and the chat and topic that the page shows.

export const state = {
  hello: null,
  chats: new Map(),
  messages: new Map(), // by chat ID, then by message ID
  chat: null, // ID of the shown chat
  topic: 0, // ID of the shown topic; 0 for General and in chats without topics
  from: 1,
};

export function begin(hello) {
  state.hello = hello;
  state.chats = new Map(hello.chats.map((chat) => [chat.id, chat]));
  state.messages = new Map(hello.chats.map((chat) => [chat.id, new Map()]));
  state.chat ??= hello.chats[0].id;
}

export const current = () => state.chats.get(state.chat);
export const messagesOf = (chat) => state.messages.get(chat) ?? state.messages.set(chat, new Map()).get(chat);
export const message = (id) => messagesOf(state.chat).get(id);
export const userName = (id) => state.hello.users.find((user) => user.id === id)?.name ?? state.hello.bot;

export function visible(m) {
  return m.chat === state.chat && (!current().forum || m.topic === state.topic);
}

export const plain = (m) => m.text.replace(directives, "").trim();

// directives matches the instructions for the scripted agent in a prompt.
export const directives = /\[\[(?:"(?:\\.|[^"\\])*"|[^"\]]|\](?!\]))*\]\]/g;

export function summary(m) {
  if (!m) return "";
  if (m.service) return m.service;
  const kinds = { photo: "🖼 Photo", voice: "🎤 Voice message", document: `📄 ${m.media?.name}`, audio: "🎵 Audio", video_note: "Video message" };
  return [m.media && kinds[m.media.kind], m.bot ? m.text : plain(m)].filter(Boolean).join(" · ").split("\n")[0];
}

export function newest(chat) {
  let last = null;
  for (const m of messagesOf(chat).values()) if (!last || m.id > last.id) last = m;
  return last;
}
