// Charts over time as SVG: stacked areas or lines, a scale, instants, and the figures under the pointer.

import { h, svg } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 170, LEFT = 58, BOTTOM = 20, TOP = 8, MARK = 6;
const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
export const MOST_SERIES = COLOURS.length;

// Two to four round steps that reach `most`: {step, steps}. What is counted has no halves.
export function scale(most, whole) {
  if (!(most > 0)) return { step: 1, steps: 1 };
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = Math.max(whole ? 1 : 0, [1, 2, 5, 10].map((part) => part * power).find((part) => part >= most / 4 * 0.999999));
  return { step, steps: Math.ceil(most / step * 0.999999) };
}

// `series` is [{name, figures}], each with one figure (or null) for every instant.
export class Chart {
  constructor(title, { write, whole = false, stacked = false, lines = false } = {}) {
    this.write = write;
    this.whole = whole;
    this.stacked = stacked;
    this.lines = lines;
    this.picture = svg("svg", { class: "chart", role: "img", "aria-label": title });
    this.legend = h("div", { class: "legend" });
    this.element = h("section", {}, h("h2", {}, title), this.picture, this.legend);
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.tell(this.instants.length - 1, false));
    this.width = 640;
    this.draw([], []);
    new ResizeObserver(() => this.fit()).observe(this.picture);
  }

  fit() {
    const width = Math.round(this.picture.clientWidth);
    if (width > LEFT && width !== this.width) {
      this.width = width;
      this.draw(this.instants, this.series);
    }
  }

  draw(instants, series) {
    this.instants = instants;
    this.series = series.slice(0, MOST_SERIES);
    const totals = instants.map((_, place) => this.stacked
      ? this.series.reduce((sum, one) => sum + (one.figures[place] || 0), 0)
      : Math.max(0, ...this.series.map((one) => one.figures[place] || 0)));
    const { step, steps } = scale(Math.max(0, ...totals), this.whole);
    this.top = step * steps;
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const parts = [];
    for (let tick = 0; tick <= steps; tick += 1) {
      const y = this.y(step * tick);
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: this.width, y1: y, y2: y }));
      const label = svg("text", { x: LEFT - 6, y: y + 3.5, "text-anchor": "end" });
      label.textContent = this.write(step * tick);
      parts.push(label);
    }
    const under = instants.map(() => 0);
    this.series.forEach((one, number) => parts.push(this.shape(one.figures, under, `var(${COLOURS[number]})`)));
    if (instants.length > 1) {
      const long = instants.at(-1) - instants[0] > 86400000;
      const places = instants.length > 2 ? [[0, "start"], [0.5, "middle"], [1, "end"]] : [[0, "start"], [1, "end"]];
      places.forEach(([share, anchor]) => {
        const label = svg("text", { x: LEFT + (this.width - LEFT) * share, y: HEIGHT - 4, "text-anchor": anchor });
        label.textContent = clock(instants[Math.round(share * (instants.length - 1))], long);
        parts.push(label);
      });
    }
    this.hair = svg("line", { class: "hair", y1: TOP, y2: HEIGHT - BOTTOM });
    this.picture.replaceChildren(...parts, this.hair);
    this.tell(instants.length - 1, false);
  }

  x(place) {
    return LEFT + (this.width - LEFT) * (this.instants.length > 1 ? place / (this.instants.length - 1) : 0);
  }

  y(figure) {
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - figure / this.top);
  }

  shape(figures, under, colour) {
    if (this.lines) {
      let path = "", pen = "M";
      figures.forEach((figure, place) => {
        if (figure === null) { pen = "M"; return; }
        path += `${pen}${this.x(place).toFixed(1)},${this.y(figure).toFixed(1)}${pen === "M" ? "h0" : ""}`;
        pen = "L";
      });
      const width = figures.length > 1 ? 2 : MARK;
      return svg("path", {
        d: path || "M0,0", fill: "none", stroke: colour, "stroke-width": width, "stroke-linecap": "round",
      });
    }
    // A figure that is alone has a width of its own, or there would be nothing to see.
    const edges = figures.length > 1 ? [0] : [0, MARK];
    const corners = (heights) => heights.flatMap((height, place) =>
      edges.map((more) => `${(this.x(place) + more).toFixed(1)},${this.y(height).toFixed(1)}`));
    const below = corners(under).reverse();
    const heights = figures.map((figure, place) => (this.stacked ? under[place] : 0) + (figure || 0));
    if (this.stacked) heights.forEach((height, place) => { under[place] = height; });
    const above = corners(heights);
    return svg("polygon", { points: [...above, ...below].join(" "), fill: colour, "fill-opacity": this.stacked ? 0.85 : 0.7 });
  }

  point(event) {
    if (!this.instants.length) return;
    const box = this.picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * this.width - LEFT) / (this.width - LEFT);
    this.tell(Math.max(0, Math.min(this.instants.length - 1, Math.round(share * (this.instants.length - 1)))), true);
  }

  tell(place, pointed) {
    if (place < 0) { this.legend.replaceChildren("No figures yet."); return; }
    this.hair.setAttribute("x1", this.x(place));
    this.hair.setAttribute("x2", this.x(place));
    this.hair.style.visibility = pointed ? "visible" : "hidden";
    const named = this.series.map((one, number) => h("span", {}, h("i", { colour: `var(${COLOURS[number]})` }),
      `${one.name} ${one.figures[place] === null ? "–" : this.write(one.figures[place])}`));
    this.legend.replaceChildren(...(pointed ? [h("span", {}, clock(this.instants[place], false))] : []), ...named);
  }
}
