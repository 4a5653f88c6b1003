// Routes and the rhythm: which part is shown, and how often it is asked for anew.

import { get } from "./api.js";
import { Domain } from "./domain.js";
import { Domains } from "./domains.js";
import { byId, h } from "./dom.js";
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

let shown = null, name = "", timer = 0, failing = false;

function route() {
  const [, wanted = "", ...rest] = location.hash.split("/");
  const [given, argument] = wanted in PARTS ? [wanted, decodeURIComponent(rest.join("/"))] : ["", ""];
  name = given;
  shown = PARTS[given](argument);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${given}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("content").replaceChildren(shown.element);
  beat();
}

async function beat() {
  clearTimeout(timer);
  const current = shown;
  try {
    const status = await get("status");
    header(status);
    if (!document.hidden) await current.refresh(status);
    failing = false;
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
    failing = true;
  } else if (!failing || error.status === 404) {
    byId("content").replaceChildren(h("section", {}, h("h2", {}, "Not found"), h("p", {}, error.message)));
  }
}

// A bare name is a domain; whatever has a path or a scheme is a URL.
function find(text) {
  const wanted = text.trim();
  if (!wanted) return;
  const bare = /^[^/\s:]+\.[^/\s:.]+\.?$/.test(wanted);
  location.hash = `#/${bare ? "domain" : "url"}/${encodeURIComponent(wanted)}`;
}

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
