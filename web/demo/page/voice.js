// Records voice messages.
import { iconButton, icon } from "/shared/dom.js";
import { toast } from "/notes.js";

const longest = 120_000; // maximum length of a recording in milliseconds

export function recorder(done) {
  let running = null;
  const button = iconButton("mic", "Record a voice message", { onclick: toggle });

  function show(recording) {
    button.classList.toggle("recording", recording);
    button.setAttribute("aria-label", recording ? "End and send the voice message" : "Record a voice message");
    button.replaceChildren(icon(recording ? "stop" : "mic"));
  }

  async function toggle() {
    if (running) return running.stop();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      return toast("The browser gives no microphone to this page.", true);
    }
    const parts = [];
    running = new MediaRecorder(stream);
    const limit = setTimeout(() => running?.stop(), longest);
    running.ondataavailable = (event) => parts.push(event.data);
    running.onstop = () => {
      clearTimeout(limit);
      for (const track of stream.getTracks()) track.stop();
      const type = running.mimeType || "audio/webm";
      running = null;
      show(false);
      done(new Blob(parts, { type }));
    };
    running.start();
    show(true);
  }

  return { button };
}
