// What the page asks of the server.

export class Refused extends Error {}

async function answerOf(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body.error ?? "ductor does not answer");
  return body;
}

export async function post(action, body) {
  return answerOf(await fetch(`/api/${action}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }));
}

export async function upload(fields, files) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const file of files) form.append("file", file, file.name);
  return answerOf(await fetch("/api/upload", { method: "POST", body: form }));
}

export const fileURL = (id) => `/api/file?id=${encodeURIComponent(id)}`;

// listen calls on[name] with each event, and lost when the connection breaks. EventSource connects again on its own.
export function listen(on, lost) {
  const source = new EventSource("/api/stream");
  for (const [name, handle] of Object.entries(on)) {
    source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  }
  source.addEventListener("error", lost);
}
