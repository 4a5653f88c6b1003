// One registrable domain: its figures, its hosts, its robots.txt, and what holds for it by a person's word.

import { get } from "./api.js";
import { figure, h, plain, renew, section, table } from "./dom.js";
import { stateChip } from "./domains.js";
import { count, moment, span } from "./format.js";
import { block, dropPolicy, pause, resume, setPolicy, takeDown } from "./orders.js";

const TIERS = ["news", "high", "normal", "low"];
const RENDERING = ["auto", "always", "never"];

const number = (text) => (text.trim() === "" ? null : Number(text));

function hoursOf(text) {
  return text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => part.split("-").map(Number));
}

export class Domain {
  constructor(name) {
    this.name = name;
    this.top = h("div");
    this.hosts = h("div");
    this.robots = h("pre");
    this.form = h("form", { class: "fields" });
    this.edited = false;
    this.element = h("div", {}, this.top,
      h("div", { class: "cards" },
        section("What holds for it", this.form),
        section("robots.txt in force", this.robots)),
      h("section", {}, h("h2", {}, "Hosts"), this.hosts));
  }

  // The form is left alone while somebody is at it, unless it is to be read anew.
  async refresh(_status, anew = false) {
    const found = await get(`domains/${encodeURIComponent(this.name)}`);
    const { domain, policy } = found;
    const act = (label, go, kind = "quiet", keep = "") => h("button", { type: "button", class: kind, "data-keep": keep || label, onclick: async () => { if (await go()) this.refresh(); } }, label);
    renew(this.top,
      h("div", { class: "head" }, h("h1", {}, domain.domain), stateChip(domain),
        h("span", { class: "spring" },
          domain.paused ? act("Resume", () => resume(domain.domain), "quiet", "pause") : act("Pause", () => pause(domain.domain), "quiet", "pause"), " ",
          act("Block", () => block(domain.domain), "danger"), " ",
          act("Take down", () => takeDown(domain.domain, true), "danger"))),
      found.blocked_by ? h("p", { class: "note bad-text" }, `Blocked by ${found.blocked_by}`) : "",
      h("dl", { class: "figures" },
        figure("pages", count(domain.pages), `${count(found.total_requests)} requests`),
        figure("queued", count(domain.queued), `${count(domain.parked)} parked`),
        figure("errors", count(domain.errors), "of its last hundred requests"),
        figure("delay", domain.delay_ms < 0 ? "–" : span(domain.delay_ms / 1000), "between two requests to a host"),
        figure("mean answer", found.avg_response_ms ? span(found.avg_response_ms / 1000) : "–", "over the whole crawl"),
        figure("hosts", count(domain.hosts), `last asked ${moment(found.last_crawled_at)}`)));
    this.robots.textContent = plain(found.robots_txt) || "There is none, or it was not read yet: everything is allowed by it.";
    this.hosts.replaceChildren(table([
      { head: "host", cell: (row) => row.host },
      { head: "state", cell: (row) => (row.reason ? `${row.state}: ${row.reason}` : row.state) },
      { head: "queued", number: true, cell: (row) => count(row.queued) },
      { head: "fetched", number: true, cell: (row) => count(row.fetched) },
      { head: "parked", number: true, cell: (row) => count(row.parked) },
      { head: "delay", number: true, cell: (row) => (row.delay_ms < 0 ? "–" : span(row.delay_ms / 1000)) },
      { head: "mean answer", number: true, cell: (row) => (row.mean_ms ? span(row.mean_ms / 1000) : "–") },
      { head: "next at", number: true, cell: (row) => (row.next_at ? moment(row.next_at) : "–") },
    ], found.hosts), domain.hosts > found.hosts.length ? h("p", { class: "note" }, `The first ${count(found.hosts.length)} of ${count(domain.hosts)}.`) : "");
    if (anew || !(this.edited || this.form.contains(document.activeElement))) this.edit(policy, domain.policy);
  }

  edit(policy, exists) {
    const field = (label, name, value, more = {}) => h("label", {}, label, h("input", { name, value: value ?? "", ...more }));
    renew(this.form,
      field("delay, seconds", "delay_s", policy.delay_s, { type: "number", min: 0, step: "any", placeholder: "as the crawl" }),
      field("depth at most", "crawl_depth", policy.crawl_depth, { type: "number", min: 0, placeholder: "as the crawl" }),
      h("label", {}, "tier", h("select", { name: "tier" }, TIERS.map((tier) => h("option", { selected: tier === policy.tier }, tier)))),
      field("fetch again every so many hours", "recrawl_interval_hours", policy.recrawl_interval_hours, { type: "number", min: 0, step: "any", placeholder: "as it changes" }),
      field("hours of the day, UTC", "hours", policy.hours.map((pair) => pair.join("-")).join(", "), { placeholder: "22-6, 12-13", pattern: "[0-9 ,\\-]*" }),
      h("label", {}, "through a browser", h("select", { name: "render" }, RENDERING.map((mode) => h("option", { selected: mode === policy.render }, mode)))),
      field("user agent", "user_agent", policy.user_agent, { placeholder: "as the crawl" }),
      h("div", { class: "wide" }, h("button", {}, "Change"), " ",
        exists ? h("button", { type: "button", class: "quiet", onclick: async () => { if (await dropPolicy(policy.domain)) { this.edited = false; this.refresh(null, true); } } }, "Take it back") : ""));
    const filled = this.said();
    this.form.oninput = () => { this.edited = true; };
    this.form.onsubmit = async (event) => {
      event.preventDefault();
      const changes = Object.entries(this.said()).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(filled[name]));
      if (await setPolicy(policy.domain, Object.fromEntries(changes))) { this.edited = false; this.refresh(null, true); }
    };
  }

  said() {
    const given = new FormData(this.form);
    return {
      delay_s: number(given.get("delay_s")), crawl_depth: number(given.get("crawl_depth")), tier: given.get("tier"),
      recrawl_interval_hours: number(given.get("recrawl_interval_hours")), hours: hoursOf(given.get("hours")),
      user_agent: given.get("user_agent").trim(), render: given.get("render"),
    };
  }
}
