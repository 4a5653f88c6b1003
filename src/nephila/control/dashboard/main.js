// Routes and the rhythm: which part is shown, and how often it is asked for anew.

import { askAgain, get } from "./api.js";
import { Domain } from "./domain.js";
import { Domains } from "./domains.js";
import { byId, h, renew } from "./dom.js";
import { span } from "./format.js";
import { alerts, changes, dead, Orders, traps } from "./lists.js";
import { Overview } from "./overview.js";
import { Story } from "./story.js";

const EVERY_MS = { "": 2000, domains: 3000, domain: 3000, url: 5000 };
const SELDOM_MS = 10000;

const PARTS = {
  "": () => new Overview(), domains: () => new Domains(), domain: (name) => new Domain(name), url: (url) => new Story(url),
  orders: () => new Orders(), traps, dead, changes, alerts,
};

let shown = null, name = "", timer = 0;

// What somebody has typed there himself may hold a bare per cent sign.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show(element) {
  const content = byId("content");
  if (content.firstChild !== element) renew(content, element);
}

function route() {
  const [, wanted = "", ...rest] = location.hash.split("/");
  const [given, argument] = Object.hasOwn(PARTS, wanted) ? [wanted, decoded(rest.join("/"))] : ["", ""];
  name = given;
  shown = PARTS[given](argument);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${given}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(shown.element);
  beat();
}

async function beat() {
  clearTimeout(timer);
  const current = shown;
  try {
    const status = await get("status");
    header(status);
    if (!document.hidden) await current.refresh(status);
    if (current === shown) show(current.element);
  } catch (error) {
    if (current === shown) failed(error);
  }
  if (current === shown) timer = setTimeout(beat, document.hidden ? SELDOM_MS : EVERY_MS[name] || SELDOM_MS);
}

function header(status) {
  const directory = status.directory.replace(/\/+$/, "").split("/").at(-1);
  byId("crawl").textContent = directory;
  document.title = `${directory} · Nephila`;
  const state = byId("state");
  state.textContent = status.stopping ? "stopping" : status.running ? `running, ${span(status.uptime_s)}` : "not running";
  state.className = `chip ${status.running ? "good" : ""}`;
  const badge = byId("alerts");
  badge.hidden = !status.alerts;
  badge.textContent = status.alerts;
}

function failed(error) {
  const state = byId("state");
  if (error.status === undefined) {
    state.textContent = "no answer";
    state.className = "chip bad";
    return;
  }
  const again = h("button", { type: "button", onclick: () => { askAgain(); beat(); } }, "Give a token");
  show(h("section", {}, h("h2", {}, error.status === 404 ? "Not found" : error.title), h("p", {}, error.message), error.status === 401 ? again : ""));
}

// A bare name is a domain; whatever has a path or a scheme is a URL.
function find(text) {
  const wanted = text.trim();
  if (!wanted) return;
  const bare = /^[^/\s:]+\.[^/\s:.]+\.?$/.test(wanted);
  location.hash = `#/${bare ? "domain" : "url"}/${encodeURIComponent(wanted)}`;
}

// Not as a link: what stands behind the number sign is the part that is shown.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("content").focus(); });
byId("find").addEventListener("submit", (event) => { event.preventDefault(); find(byId("wanted").value); });
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || "");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); byId("wanted").focus(); }
});

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const chosen = localStorage.getItem("nephila-theme");
  document.documentElement.classList.toggle("dark", chosen ? chosen === "dark" : dark.matches);
}
byId("theme").addEventListener("click", () => {
  localStorage.setItem("nephila-theme", document.documentElement.classList.contains("dark") ? "light" : "dark");
  theme();
});
dark.addEventListener("change", theme);
theme();

addEventListener("hashchange", () => { route(); byId("content").focus({ preventScroll: true }); scrollTo(0, 0); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) beat(); });
route();
