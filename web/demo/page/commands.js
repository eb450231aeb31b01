// The list of commands, which opens when the user's text begins with a slash.
import { h } from "/shared/dom.js";
import { state } from "/state.js";

export function commandList(input, choose) {
  const element = h("ul", { class: "commands", id: "commands", role: "listbox", "aria-label": "Commands", hidden: true });
  let at = -1;

  const items = () => [...element.children];
  const close = () => {
    element.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const pick = (name) => {
    close();
    input.value = "";
    choose(`/${name}`);
  };
  const select = (n) => {
    at = (n + items().length) % items().length;
    items().forEach((item, i) => item.setAttribute("aria-selected", String(i === at)));
    items()[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items()[at].id);
  };

  return {
    element, close,
    suggest() {
      const word = /^\/(\w*)$/.exec(input.value)?.[1];
      const found = word === undefined ? [] : (state.commands ?? []).filter((c) => c.name.startsWith(word));
      element.replaceChildren(...found.map((c) => h("li", { id: `command-${c.name}`, role: "option", "aria-selected": "false", onclick: () => pick(c.name) },
        h("strong", {}, `/${c.name}`), h("span", {}, c.description))));
      element.hidden = !found.length;
      input.setAttribute("aria-expanded", String(found.length > 0));
      at = -1;
    },
    // key handles a pressed key. It returns false if the list does not use the key.
    key(event) {
      if (element.hidden) return false;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") select(event.key === "ArrowDown" ? at + 1 : at < 0 ? -1 : at - 1);
      else if (event.key === "Enter" && at >= 0) pick(items()[at].id.replace("command-", ""));
      else if (event.key === "Tab" && at >= 0) {
        input.value = `/${items()[at].id.replace("command-", "")} `;
        close();
      } else if (event.key === "Escape") close();
      else return false;
      event.preventDefault();
      return true;
    },
  };
}
