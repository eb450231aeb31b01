// Bar charts of the last days, as SVG. Screen readers read the values as a table.
import { h } from "/shared/dom.js";

const ns = "http://www.w3.org/2000/svg";
const wide = 360;
const high = 130;

function draw(tag, attributes, ...children) {
  const el = document.createElementNS(ns, tag);
  for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
  el.append(...children);
  return el;
}

// plot draws one value for each day. write converts a value to text.
export function plot(title, days, value, write) {
  const values = days.map(value);
  const most = Math.max(...values, 0);
  const step = wide / Math.max(days.length, 1);
  const bars = days.map((day, i) => {
    const height = most > 0 ? Math.max(values[i] / most * (high - 34), values[i] > 0 ? 2 : 1) : 1;
    return draw("rect", { x: i * step + 2, y: high - 18 - height, width: step - 4, height, rx: 2, class: values[i] > 0 ? "" : "none" },
      draw("title", {}, `${day.day}: ${write(values[i])}`));
  });
  const label = (i, anchor, x) => draw("text", { x, y: high - 3, "text-anchor": anchor }, days[i]?.day.slice(5) ?? "");
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" }, ...bars, label(0, "start", 0), label(days.length - 1, "end", wide),
    draw("text", { x: 0, y: 11 }, `most in a day: ${write(most)}`));
  return h("div", { class: "card plot" },
    h("h3", {}, title, h("strong", {}, write(values.reduce((a, b) => a + b, 0)))), svg,
    h("div", { class: "sr-only" }, h("table", {}, h("caption", {}, `${title} of each day`),
      h("tbody", {}, days.map((day, i) => h("tr", {}, h("th", { scope: "row" }, day.day), h("td", {}, write(values[i]))))))));
}
