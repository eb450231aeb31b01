// The requests of the page to the server.
import { ask, Refused } from "/shared/ask.js";

export { Refused };

export async function post(action, body) {
  const answer = await ask(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return answer.json();
}

export async function upload(fields, files) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const file of files) form.append("file", file, file.name);
  return (await ask("upload", { method: "POST", body: form })).json();
}

const files = new Map(); // promises of the addresses of files that the page has loaded, by ID

// fileURL returns a promise of an address with which this page can show a file.
export function fileURL(id) {
  if (!files.has(id)) {
    files.set(id, ask(`file?id=${encodeURIComponent(id)}`).then((answer) => answer.blob()).then((blob) => URL.createObjectURL(blob)));
    files.get(id).catch(() => files.delete(id));
  }
  return files.get(id);
}

const pause = 1500; // in milliseconds, before the page connects again

// listen receives events and calls on[name] for each of them. If the connection is lost, listen calls lost with a text, and
// connects again. If the server does not accept the token, listen calls lost with a text and true, and returns.
export async function listen(on, lost) {
  for (;;) {
    try {
      await follow(await ask("stream"), on);
      lost("The connection to ductor is lost. The page connects again.");
    } catch (err) {
      if (err.status === 401) return lost(err.message, true);
      lost(err instanceof Refused ? err.message : "The connection to ductor is lost. The page connects again.");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function follow(answer, on) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/);
      on[name]?.(JSON.parse(data));
    }
  }
}
