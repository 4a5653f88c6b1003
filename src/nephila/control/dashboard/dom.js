// Elements, built and never parsed: whatever a stranger's page is called stays text.

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
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
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

// Text in which every URL leads to its story.
export function linked(text) {
  return text.split(/(https?:\/\/[^\s"'<>,;]+)/).map((part, place) => (
    place % 2 ? h("a", { href: `#/url/${encodeURIComponent(part)}` }, part) : part));
}
