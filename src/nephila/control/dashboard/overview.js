// The first page: how the crawl does now, and how it did in the last hour or the last days.

import { get } from "./api.js";
import { Chart, MOST_SERIES } from "./charts.js";
import { bars, figure, h, section, table } from "./dom.js";
import { count, rate, short, size, span, sum } from "./format.js";

const CLASSES = ["immediate", "high", "medium", "low"];

const seconds = (figure) => span(figure);

const WORKERS = [
  { head: "worker", cell: (row) => row.name }, { head: "state", cell: (row) => (row.waits_for ? `${row.state}: ${row.waits_for}` : row.state) },
  { head: "pages", number: true, cell: (row) => short(row.pages) }, { head: "a second", number: true, cell: (row) => rate(row.pages_per_s) },
  { head: "in flight", number: true, cell: (row) => count(row.in_flight) }, { head: "errors", number: true, cell: (row) => short(row.errors) },
  { head: "memory", number: true, cell: (row) => size(row.memory_bytes) }, { head: "to upload", number: true, cell: (row) => size(row.spool_bytes) },
  { head: "heard of", number: true, cell: (row) => `${span(row.silent_s)} ago` },
];
const MOST_WORKERS = 100;

export class Overview {
  constructor() {
    this.resolution = "fine";
    this.figures = h("dl", { class: "figures" });
    this.charts = {
      pages: new Chart("Pages a second", { write: rate }),
      bytes: new Chart("Bytes a second", { write: (figure) => `${size(figure)}/s` }),
      errors: new Chart("Errors a minute, by kind", { write: short, whole: true, stacked: true }),
      latency: new Chart("Time of an answer", { write: seconds, lines: true }),
      frontier: new Chart("Queued URLs, by class", { write: short, whole: true, stacked: true }),
      hosts: new Chart("Hosts", { write: short, whole: true, lines: true }),
    };
    this.hour = h("div");
    this.left = h("div");
    this.workers = h("div");
    const choice = h("select", { "aria-label": "Span of the charts", onchange: (event) => { this.resolution = event.target.value; this.refresh(); } },
      h("option", { value: "fine" }, "the last hour"), h("option", { value: "coarse" }, "the last three days"));
    this.element = h("div", {},
      this.figures,
      h("div", { class: "head" }, h("span", { class: "spring" }, choice)),
      h("div", { class: "cards" }, Object.values(this.charts).map((chart) => chart.element),
        section("Errors of the last hour", this.hour), section("What waits, and for what", this.left)),
      section("Workers", this.workers));
  }

  async refresh(status) {
    const [now, series, who] = await Promise.all([status || get("status"), get("series", { resolution: this.resolution }), get("workers")]);
    this.show(now);
    this.attend(who);
    this.draw(series);
  }

  show(now) {
    const failed = sum(now.errors_last_hour);
    this.figures.replaceChildren(
      figure("pages a second", rate(now.crawl_rate), `${rate(now.avg_pages_per_sec)} in this run`),
      figure("pages today", short(now.pages_crawled_today), `${short(now.pages_this_month)} this month`),
      figure("stored in all", short(now.pages), `${size(now.bytes)} on the wire`),
      figure("frontier", short(now.frontier_size), `${short(now.known)} URLs known`),
      figure("domains", short(now.domains), `${short(now.domains_active)} hosts at work or ready`),
      figure("in flight", count(now.in_flight), `${count(now.active_workers)} ${now.active_workers === 1 ? "worker" : "workers"}`),
      figure("errors, last hour", short(failed), `${short(now.errors_today)} today`),
      figure("median answer", span(now.latency_s.p50), `95 %: ${span(now.latency_s.p95)}`),
      figure("duplicates", short(now.duplicates), "in this run"),
      figure("held back", short(sum(now.parked)), `${count(now.traps)} ${now.traps === 1 ? "trap" : "traps"}`),
    );
    this.hour.replaceChildren(bars(now.errors_last_hour, count));
    const waits = Object.entries(now.waiting).map(([name, number]) => [`waiting: ${name}`, number]);
    const off = Object.entries(now.put_off).map(([name, number]) => [`put off: ${name}`, number]);
    const parked = Object.entries(now.parked).map(([name, number]) => [`parked: ${name}`, number]);
    this.left.replaceChildren(bars(Object.fromEntries([...waits, ...off, ...parked]), count));
  }

  attend({ workers, outside }) {
    const more = workers.length > MOST_WORKERS ? [`The first ${MOST_WORKERS} of ${count(workers.length)}.`] : [];
    if (outside) more.push(`${count(outside)} of others, over HTTP.`);
    this.workers.replaceChildren(table(WORKERS, workers.slice(0, MOST_WORKERS), "Nobody works on this crawl."),
      more.length ? h("p", { class: "note" }, more.join(" ")) : "");
  }

  draw({ steps }) {
    const instants = steps.map((step) => step.at);
    const over = (pick) => steps.map(pick);
    const kinds = new Map();
    for (const step of steps) for (const [kind, number] of Object.entries(step.errors)) kinds.set(kind, (kinds.get(kind) || 0) + number);
    const worst = [...kinds].sort((one, two) => two[1] - one[1]).map(([kind]) => kind);
    const named = worst.length > MOST_SERIES ? worst.slice(0, MOST_SERIES - 1) : worst;
    const errors = named.map((kind) => ({ name: kind, figures: over((step) => (step.errors[kind] || 0) * 60 / step.span_s) }));
    if (named.length < worst.length) {
      const rest = worst.slice(named.length);
      errors.push({ name: "others", figures: over((step) => rest.reduce((all, kind) => all + (step.errors[kind] || 0), 0) * 60 / step.span_s) });
    }
    const { charts } = this;
    charts.pages.draw(instants, [{ name: "pages", figures: over((step) => step.pages / step.span_s) }]);
    charts.bytes.draw(instants, [{ name: "bytes", figures: over((step) => step.bytes / step.span_s) }]);
    charts.errors.draw(instants, errors);
    charts.latency.draw(instants, ["p50", "p95", "p99"].map((name) => ({ name, figures: over((step) => step.latency_s[name] ?? null) })));
    charts.frontier.draw(instants, CLASSES.map((name) => ({ name, figures: over((step) => step.frontier[name] || 0) })));
    charts.hosts.draw(instants, ["ready", "waiting", "leased"].map((name) => ({ name, figures: over((step) => step.hosts[name] || 0) })));
  }
}
