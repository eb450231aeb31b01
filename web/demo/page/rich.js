// The elements of rich messages: blocks with tables, lists and details.
import { h } from "/shared/dom.js";
import { renderText, codeBlock, opened } from "/text.js";

// renderRich returns the elements of blocks. key identifies the message. A press of a command calls onCommand.
export function renderRich(blocks, key, onCommand) {
  return blocks.map((b, i) => block(b, `${key}/${i}`, onCommand));
}

function block(b, key, onCommand) {
  const text = () => renderText(b.text ?? "", b.entities, key, onCommand);
  const inner = () => renderRich(b.blocks ?? [], key, onCommand);
  switch (b.kind) {
    case "heading": return h(`h${Math.min(b.size + 2, 6)}`, {}, text());
    case "pre": return codeBlock(b.text ?? "", b.language);
    case "footer": return h("p", { class: "rich-footer" }, text());
    case "divider": return h("hr", {});
    case "blockquote": return h("blockquote", { class: "quote" }, inner());
    case "details": return details(b, key, text(), inner());
    case "list": return list(b, key, onCommand);
    case "table": return table(b, key, onCommand);
    default: return h("p", {}, text());
  }
}

// details returns a block that users can open. An open block stays open when its message is edited.
function details(b, key, summary, inner) {
  const el = h("details", {}, h("summary", { "data-focus": `details ${key}` }, summary), inner);
  el.open = opened.has(key) || Boolean(b.open);
  el.addEventListener("toggle", () => (el.open ? opened.add(key) : opened.delete(key)));
  return el;
}

function list(b, key, onCommand) {
  return h("ul", {}, b.items.map((item, i) => {
    const mark = item.box
      ? h("span", { role: "img", "aria-label": item.checked ? "done" : "to do" }, item.checked ? "☑" : "☐")
      : h("span", {}, item.label);
    return h("li", {}, mark, h("div", {}, renderRich(item.blocks, `${key}/${i}`, onCommand)));
  }));
}

function table(b, key, onCommand) {
  const rows = b.rows.map((row, i) => h("tr", {}, row.map((c, j) => h(c.header ? "th" : "td",
    { style: `text-align: ${c.align}`, colSpan: c.colspan || 1, rowSpan: c.rowspan || 1 },
    renderText(c.text ?? "", c.entities, `${key}/${i}/${j}`, onCommand)))));
  return h("div", { class: "rich-table", tabindex: "0" }, h("table", {}, rows));
}
