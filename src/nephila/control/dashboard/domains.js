// The table of domains: searched and sorted by the crawl, a page at a time, so that 100,000 hosts are no matter.

import { get } from "./api.js";
import { h, renew } from "./dom.js";
import { count, span } from "./format.js";
import { pause, resume } from "./orders.js";

const PAGE = 50;
const COLUMNS = [
  { head: "domain", sort: "domain" }, { head: "state" }, { head: "pages", sort: "pages", number: true },
  { head: "queued", sort: "queued", number: true }, { head: "parked", number: true },
  { head: "errors of 100", sort: "errors", number: true }, { head: "delay", sort: "delay", number: true },
  { head: "mean answer", number: true }, { head: "hosts", sort: "hosts", number: true },
];

export const stateChip = (row) => h("span", { class: `chip ${row.paused || row.blocked ? "bad" : row.state === "leased" ? "good" : ""}`, title: row.reason },
  row.blocked ? "blocked" : row.paused ? "paused" : row.reason ? `${row.state}: ${row.reason}` : row.state);

export class Domains {
  constructor() {
    this.asked = { search: "", sort: "queued", order: "desc", offset: 0 };
    this.body = h("tbody");
    this.heads = COLUMNS.map((column) => h("th", { scope: "col", class: column.number ? "number" : "" },
      column.sort ? h("button", { type: "button", onclick: () => this.sort(column.sort) }, column.head) : column.head));
    this.told = h("p", { class: "note", role: "status" });
    this.back = h("button", { type: "button", class: "quiet", onclick: () => this.turn(-PAGE) }, "← earlier");
    this.on = h("button", { type: "button", class: "quiet", onclick: () => this.turn(PAGE) }, "later →");
    let typing;
    const search = h("input", { type: "search", placeholder: "A part of the name", "aria-label": "Search domains", oninput: (event) => {
      clearTimeout(typing);
      typing = setTimeout(() => { this.asked.search = event.target.value.trim().toLowerCase(); this.asked.offset = 0; this.refresh(); }, 250);
    } });
    this.element = h("section", {},
      h("div", { class: "head" }, h("h2", {}, "Domains"), search, h("span", { class: "spring" }, this.back, " ", this.on)),
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, this.heads, h("th", {}, h("span", { class: "hidden" }, "do")))), this.body)),
      this.told);
  }

  sort(by) {
    const { asked } = this;
    asked.order = asked.sort === by && asked.order === "desc" ? "asc" : asked.sort === by || by !== "domain" ? "desc" : "asc";
    asked.sort = by;
    asked.offset = 0;
    this.refresh();
  }

  turn(by) {
    this.asked.offset = Math.max(0, this.asked.offset + by);
    this.refresh();
  }

  async refresh() {
    const asked = { ...this.asked };
    const { domains, total, offset, complete } = await get("domains", { ...asked, limit: PAGE });
    if (JSON.stringify(asked) !== JSON.stringify(this.asked)) return;
    COLUMNS.forEach((column, place) => {
      if (column.sort === asked.sort) this.heads[place].setAttribute("aria-sort", asked.order === "desc" ? "descending" : "ascending");
      else this.heads[place].removeAttribute("aria-sort");
    });
    renew(this.body, ...domains.map((row) => this.row(row)));
    const last = offset + domains.length;
    this.told.textContent = total ? `${count(offset + 1)} to ${count(last)} of ${count(total)}${complete ? "" : "; the list is still being read"}.`
      : complete ? "No domain fits." : "The list is being read.";
    this.back.disabled = offset === 0;
    this.on.disabled = last >= total;
  }

  row(row) {
    const act = row.paused ? () => resume(row.domain) : () => pause(row.domain);
    return h("tr", {},
      h("td", { class: "word" }, h("a", { href: `#/domain/${encodeURIComponent(row.domain)}` }, row.domain)),
      h("td", {}, stateChip(row)),
      ...[row.pages, row.queued, row.parked, row.errors].map((number) => h("td", { class: "number" }, count(number))),
      h("td", { class: "number" }, row.delay_ms < 0 ? "–" : span(row.delay_ms / 1000)),
      h("td", { class: "number" }, row.mean_ms ? span(row.mean_ms / 1000) : "–"),
      h("td", { class: "number" }, count(row.hosts)),
      h("td", { class: "act" }, h("button", { type: "button", class: "small", "data-keep": row.domain, "aria-label": `${row.paused ? "Resume" : "Pause"} ${row.domain}`, onclick: async () => { if (await act()) this.refresh(); } },
        row.paused ? "Resume" : "Pause")));
  }
}
