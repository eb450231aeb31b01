// The theme: light, dark, or the setting of the system. The browser stores the user's choice.
import { announce } from "/shared/dom.js";

const order = ["auto", "light", "dark"];
const key = "ductor-theme";

function read() {
  try {
    return localStorage.getItem(key) ?? "auto";
  } catch {
    return "auto"; // the browser stores nothing for this page
  }
}

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function applyTheme() {
  apply(read());
}

// themeButton makes each press of a button select the next theme.
export function themeButton(button) {
  const label = (theme) => `Theme: ${theme === "auto" ? "as the system" : theme}`;
  button.setAttribute("aria-label", label(read()));
  button.title = label(read());
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(read()) + 1) % order.length];
    try {
      localStorage.setItem(key, next);
    } catch {
      // The browser stores nothing for this page, so the choice lasts until the page is closed.
    }
    apply(next);
    button.setAttribute("aria-label", label(next));
    button.title = label(next);
    announce(label(next));
  });
}
