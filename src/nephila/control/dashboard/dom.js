// Elements, built and never parsed: whatever a stranger's page is called stays text.

// What would turn the direction of writing, or is no character to be seen, is shown as such, as on the command line.
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
export const plain = (text) => (typeof text === "string" ? text.replace(UNPRINTABLE, "\ufffd") : text);

export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "width%") element.style.width = `${value}%`;
    else if (key === "colour") element.style.background = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== "").map(plain));
  return element;
}

// Shows something new in the place of the old; whoever stood there with the keyboard stands there again. `data-keep` is
// for what changes its name by being used.
export function renew(parent, ...children) {
  const named = (element) => element.dataset.keep || element.name || element.getAttribute("aria-label") || element.getAttribute("href") || element.textContent;
  const called = (element) => `${element.tagName} ${named(element)}`;
  const held = parent.contains(document.activeElement) ? called(document.activeElement) : "";
  parent.replaceChildren(...children.map(plain));
  if (held) [...parent.querySelectorAll("a, button, input, select")].find((one) => called(one) === held)?.focus({ preventScroll: true });
}

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}

export function figure(name, value, more = "") {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, more)));
}

// Columns are {head, cell(row), number}; an empty list says so.
export function table(columns, rows, nothing = "None.") {
  if (!rows.length) return h("p", { class: "note" }, nothing);
  const head = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : "" }, column.head));
  const kind = (column) => (column.act ? "act" : column.number ? "number" : "word");
  const body = rows.map((row) => h("tr", {}, columns.map((column) => h("td", { class: kind(column) }, column.cell(row)))));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

export function bars(counts, write) {
  const rows = Object.entries(counts).filter(([, number]) => number).sort((one, two) => two[1] - one[1]);
  if (!rows.length) return h("p", { class: "note" }, "None.");
  const most = rows[0][1];
  return h("table", { class: "bars" }, rows.map(([name, number]) => h("tr", {},
    h("th", { scope: "row", title: name }, name),
    h("td", { class: "bar" }, h("span", { "width%": 100 * number / most })),
    h("td", {}, write(number)))));
}

// A URL that leads to its story.
export const story = (url, label = url) => (url ? h("a", { href: `#/url/${encodeURIComponent(url)}` }, label) : "");

// Text in which every URL leads to its story. What ends a sentence, or closes what was opened before, is no part of it.
export function linked(text) {
  return text.split(/(https?:\/\/[^\s"<>`]+)/).flatMap((part, place) => {
    if (place % 2 === 0) return [part];
    let end = part.length;
    const odd = (mark) => part.slice(0, end).split(mark).length % 2 === 0;
    const open = () => part.slice(0, end).split("(").length - part.slice(0, end).split(")").length;
    while (/[.,;:!?]/.test(part[end - 1]) || (part[end - 1] === ")" && open() < 0) || (part[end - 1] === "'" && odd("'"))) end -= 1;
    return [story(part.slice(0, end)), part.slice(end)];
  });
}
