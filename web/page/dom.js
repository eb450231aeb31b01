// Small helper functions for the elements of a page.

// h creates an element. Properties whose names begin with "on" are listeners. "class" and names with a dash are attributes.
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name in el && !name.includes("-") && name !== "list" && name !== "form") el[name] = value;
    else el.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) el.append(child);
  }
}

export const byId = (id) => document.getElementById(id);

const paths = {
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6L6 18",
  send: "M4 12l16-8-6 16-3-7-7-1z",
  attach: "M8 12.5l6.2-6.2a3 3 0 014.3 4.3l-8 8a5 5 0 01-7-7l7.7-7.8",
  mic: "M12 3.5a3 3 0 013 3v5a3 3 0 01-6 0v-5a3 3 0 013-3zM5.5 11.5a6.5 6.5 0 0013 0M12 18v3",
  stop: "M7 7h10v10H7z",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  panel: "M4 5h16v14H4zM14 5v14M16.5 9h1M16.5 12h1",
  down: "M6 9l6 6 6-6",
  file: "M7 3h7l5 5v13H7zM14 3v5h5",
  check: "M5 12.5l4.5 4.5L19 7.5",
  plus: "M12 5v14M5 12h14",
  menu: "M5 7h14M5 12h14M5 17h14",
};

// icon returns a drawing that screen readers ignore.
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, ...props }, icon(name));
}

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} KB`;
  return `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} MB`;
}

let saying;

// announce makes screen readers read a text.
export function announce(text) {
  const status = byId("status");
  clearTimeout(saying);
  saying = setTimeout(() => { status.textContent = text; }, 60);
}
