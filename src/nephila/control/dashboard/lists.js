// Seeds and blocks; and the lists of traps, dead letters, changes and alerts.

import { get, post } from "./api.js";
import { h, renew, section, story, table } from "./dom.js";
import { count, moment } from "./format.js";
import { block, revive, unblock } from "./orders.js";
import { attempt, notice } from "./talk.js";

const button = (label, what, go, again) => h("button", { type: "button", class: "small", "aria-label": `${label} ${what}`.trim(), onclick: async () => { if (await go()) again(); } }, label);

export class Orders {
  constructor() {
    this.result = h("div", { role: "status" });
    this.blocks = h("div");
    const urls = h("textarea", { name: "urls", required: true, spellcheck: false, placeholder: "https://example.org/\nexample.net" });
    const level = h("select", { name: "priority" }, ["high", "immediate", "medium", "low"].map((name) => h("option", {}, name)));
    const seeds = h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.sow(urls, level.value); } },
      h("label", {}, "URLs or domains, one a line", urls), h("label", {}, "class", level), h("button", {}, "Add seeds"), this.result);
    const pattern = h("input", { required: true, placeholder: "example.org or https://example.org/private" });
    const reason = h("input", { required: true, placeholder: "they asked us" });
    const forbid = h("form", { class: "fields", onsubmit: async (event) => {
      event.preventDefault();
      if (await block(pattern.value.trim(), reason.value.trim())) { forbid.reset(); this.refresh(); }
    } }, h("label", {}, "domain, host, or how URLs begin", pattern), h("label", {}, "why", reason), h("div", {}, h("button", { class: "danger" }, "Block")));
    this.element = h("div", { class: "cards" }, section("Add seeds", seeds), section("Forbid", forbid, h("p", { class: "note" }, "What is stored stays stored."), this.blocks));
  }

  async sow(urls, priority) {
    const given = urls.value.split(/\s+/).filter(Boolean);
    if (!given.length) return;
    await attempt(async () => {
      const answer = await post("seeds", { urls: given, priority });
      this.result.replaceChildren(
        h("p", {}, `${count(answer.added)} added, ${count(answer.duplicates)} known already, ${count(answer.refused.length)} refused.`),
        answer.refused.length ? table([{ head: "refused", cell: (row) => row.url }, { head: "why", cell: (row) => row.detail || row.reason }], answer.refused) : "");
      if (answer.added) { urls.value = ""; notice(`${count(answer.added)} added.`); }
    });
  }

  async refresh() {
    const { blocks, total } = await get("blocklist", { limit: 200 });
    renew(this.blocks,
      table([
        { head: "blocked", cell: (row) => row.pattern }, { head: "why", cell: (row) => row.reason }, { head: "since", cell: (row) => moment(row.blocked_at) },
        { head: "", act: true, cell: (row) => button("Lift", row.pattern, () => unblock(row), () => this.refresh()) },
      ], blocks, "Nothing is blocked."),
      total > blocks.length ? h("p", { class: "note" }, `${count(total)} in all.`) : "");
  }
}

export class List {
  constructor(title, note, load) {
    this.load = load;
    this.body = h("div");
    this.element = h("section", {}, h("h2", {}, title), h("p", { class: "note" }, note), this.body);
  }

  async refresh() {
    const shown = await this.load(() => this.refresh());
    renew(this.body, ...[shown].flat());
  }
}

export const traps = () => new List("Traps", "Shapes of URLs that stopped bringing anything new. They are tried again from time to time; `nephila traps DIR HOST --release` lets one start anew.", async () => {
  const { traps: found, total } = await get("traps", { limit: 100 });
  return [table([
    { head: "host", cell: (row) => (row.example ? [row.host, " (", story(row.example, "one"), ")"] : row.host) }, { head: "pattern", cell: (row) => row.pattern }, { head: "state", cell: (row) => row.state },
    { head: "fetched", number: true, cell: (row) => count(row.fetched) }, { head: "held back", number: true, cell: (row) => count(row.parked) },
    { head: "next try", cell: (row) => moment(row.next_try_at) }, { head: "evidence", cell: (row) => row.evidence },
  ], found, "None: every shape of URL still brings something new."), h("p", { class: "note" }, `${count(total)} in all.`)];
});

export const dead = () => new List("Dead letters", "URLs that were given up after all their retries.", async (again) => {
  const { dead_letters: found, total } = await get("dead-letters", { limit: 200 });
  return [
    total ? h("p", {}, button(`Put back all ${count(total)}`, "", () => revive(null), again)) : "",
    table([
      { head: "URL", cell: (row) => story(row.url) }, { head: "kind", cell: (row) => row.kind }, { head: "detail", cell: (row) => row.detail },
      { head: "given up", cell: (row) => moment(row.at) }, { head: "", act: true, cell: (row) => button("Put back", row.url, () => revive([row.url]), again) },
    ], found, "Nothing was given up."),
  ].filter(Boolean);
});

export const changes = () => new List("Changes", "What people and programs changed through this interface, the newest first.", async () => {
  const { changes: found } = await get("changes", { limit: 200 });
  const told = (value) => (value === null || value === undefined ? "–" : JSON.stringify(value));
  return table([
    { head: "when", cell: (row) => moment(row.at) }, { head: "who", cell: (row) => row.who }, { head: "what", cell: (row) => (row.state === "done" ? row.what : `${row.what} (${row.state})`) },
    { head: "on", cell: (row) => row.target }, { head: "before", cell: (row) => told(row.before) }, { head: "after", cell: (row) => told(row.after) },
  ], found, "Nothing was changed yet.");
});

export const alerts = () => new List("Alerts", "What is wrong now. Thresholds are settings of the crawl.", async () => {
  const { alerts: found, rules } = await get("alerts");
  return [table([
    { head: "alert", cell: (row) => row.name }, { head: "since", cell: (row) => moment(row.since_at) }, { head: "what", cell: (row) => row.summary },
  ], found, "All is well."), h("p", { class: "note" }, `Looked for: ${rules.join(", ")}.`)];
});
