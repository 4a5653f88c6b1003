// The whole story of a URL: where it was found, what was decided, by which rule, and every capture of it.

import { get } from "./api.js";
import { h, linked, renew, section, story, table } from "./dom.js";
import { moment, size } from "./format.js";
import { again, block, takeDown } from "./orders.js";

export class Story {
  constructor(url) {
    this.url = url;
    this.told = h("dl", { class: "story" });
    this.captures = h("div");
    this.element = h("div", {},
      h("div", { class: "head" }, h("h1", {}, url), h("span", { class: "spring" },
        h("button", { type: "button", class: "quiet", onclick: () => again(url) }, "Fetch again now"), " ",
        h("button", { type: "button", class: "danger", onclick: () => block(url) }, "Block"), " ",
        h("button", { type: "button", class: "danger", onclick: async () => { if (await takeDown(url, false)) this.refresh(); } }, "Take down"))),
      section("What became of it", this.told), section("Captures", this.captures));
  }

  async refresh() {
    const { lines, data } = await get("why", { url: this.url });
    const { pages } = data.captures?.length ? await get("pages", { url: this.url }) : { pages: [] };
    renew(this.told, ...lines.flatMap((line) => [h("dt", {}, line.label), h("dd", {}, line.label === "URL" ? line.text : linked(line.text))]));
    renew(this.captures, table([
      { head: "when", cell: (row) => moment(row.crawled_at) },
      { head: "status", number: true, cell: (row) => String(row.status) },
      { head: "type", cell: (row) => row.content_type },
      { head: "size", number: true, cell: (row) => size(row.length) },
      { head: "title", cell: (row) => row.title },
      { head: "same as", cell: (row) => story(row.duplicate_of || row.near_duplicate_of) },
      { head: "stored as", cell: (row) => row.storage_key },
    ], pages, "It was never fetched."));
  }
}
