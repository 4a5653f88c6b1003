// Questions before something is changed, notices after it, with a way back where there is one.

import { byId, h, plain } from "./dom.js";

const NOTICE_MS = 10000;

let before = Promise.resolve();

// Resolves to true (or to what was typed) when the person agrees, to false otherwise. One question at a time.
export function ask(title, more) {
  const answer = before.then(() => pose(title, more));
  before = answer.catch(() => {});
  return answer;
}

function pose(title, { text = "", field = null, go = "Go ahead", danger = false } = {}) {
  const dialog = byId("question"), agreed = byId("agreed");
  byId("asked").textContent = plain(title);
  byId("cancelled").onclick = () => dialog.close("");
  const input = field && h("input", { type: field.type || "text", required: true, autocomplete: "off", id: "typed" });
  byId("more").replaceChildren(
    ...(text ? [h("p", { class: "note" }, text)] : []),
    ...(field ? [h("label", { for: "typed", class: "stack" }, field.label, input)] : []),
  );
  agreed.textContent = go;
  agreed.className = danger ? "danger" : "";
  dialog.returnValue = "";
  dialog.showModal();
  (input || agreed).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const yes = dialog.returnValue === "yes";
      resolve(input ? yes && input.value.trim() : yes);
    }, { once: true });
  });
}

export function notice(text, undo = null) {
  const box = h("div", { class: "notice" }, h("span", {}, text));
  if (undo) {
    box.append(h("button", { type: "button", class: "small", onclick: () => { box.remove(); attempt(undo); } }, "Undo"));
  }
  show(box);
}

export function complain(error) {
  show(h("div", { class: "notice bad" }, h("span", {}, String(error.message || error))));
}

function show(box) {
  byId("notices").append(box);
  setTimeout(() => box.remove(), NOTICE_MS);
}

// Does something and says so when it fails; never throws.
export async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    complain(error);
    return undefined;
  }
}
