// Light, dark, or what the system says. The choice stays in this browser.
import { announce } from "/shared/dom.js";

const order = ["auto", "light", "dark"];
const key = "ductor-theme";

function read() {
  try {
    return localStorage.getItem(key) ?? "auto";
  } catch {
    return "auto"; // the browser keeps nothing
  }
}

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function applyTheme() {
  apply(read());
}

// themeButton changes the theme with each press.
export function themeButton(button) {
  const label = (theme) => `Theme: ${theme === "auto" ? "as the system" : theme}`;
  button.setAttribute("aria-label", label(read()));
  button.title = label(read());
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(read()) + 1) % order.length];
    try {
      localStorage.setItem(key, next);
    } catch {
      // it lasts until the page is closed
    }
    apply(next);
    button.setAttribute("aria-label", label(next));
    button.title = label(next);
    announce(label(next));
  });
}
