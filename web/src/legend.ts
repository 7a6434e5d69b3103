/** The legend: a gradient with ticks, or swatches with names and ranges. */

import type { Classes, Shade } from "./api";
import { byId, element } from "./element";
import type { Session } from "./session";

export function showLegend(session: Session): void {
  let drawn = "";
  session.listen(({ choice: { variable, stations }, legends, offer }) => {
    const wanted = `${variable}/${stations}/${offer.style}`;
    if (drawn === wanted) return;
    drawn = wanted;
    const map = legends[variable];
    const parts = draw(map);
    // Circles may have another scale than the map below them; then both are shown.
    const circles = stations === "difference" ? "error" : "pm25";
    if (stations !== "off" && !sharesScale(variable, circles)) {
      const label = stations === "difference" ? "Stations: model − observed" : "Stations: observed PM2.5";
      parts.push(...draw({ ...legends[circles], label, note: "" }));
    }
    byId("legend").replaceChildren(...parts);
  });
}

const sharesScale = (variable: string, circles: string) =>
  variable === circles || (variable === "truth" && circles === "pm25");

function draw(legend: Shade | Classes): HTMLElement[] {
  const title = element("h2", {}, capital(legend.label), " ", element("span", {}, legend.unit));
  const scale = legend.kind === "shade" ? gradient(legend) : swatches(legend);
  return [title, scale, ...(legend.note ? [element("p", {}, legend.note)] : [])];
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const minus = (value: number) => String(value).replace("-", "−");

function gradient({ stops }: Shade): HTMLElement {
  const [low, high] = [stops[0]!.value, stops.at(-1)!.value];
  const percent = (value: number) => (100 * (value - low)) / (high - low);
  const colours = stops.map(({ value, colour }) => `${colour} ${percent(value).toFixed(1)}%`);
  const bar = element("div", { class: "gradient" });
  bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
  const marks = ticks(low, high).map((value) => {
    const mark = element("span", {}, tickText(value, low, high));
    mark.style.left = `${percent(value)}%`;
    if (value === low) mark.className = "at-start";
    if (value === high) mark.className = "at-end";
    return mark;
  });
  return element("div", { class: "shade" }, bar, element("div", { class: low < 0 ? "ticks signed" : "ticks" }, ...marks));
}

/** The ends stand for all beyond them, except that nothing lies below zero PM2.5. */
function tickText(value: number, low: number, high: number): string {
  const beyond = value === high ? "≥\u202f" : value === low && low < 0 ? "≤\u202f" : "";
  return beyond + (low < 0 && value > 0 ? "+" : "") + minus(value);
}

/** Round values, ending at low and high where that can be, in `about` steps or fewer; the chart uses them too. */
export function ticks(low: number, high: number, about = 5): number[] {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const sizes = [1, 1.5, 2, 2.5, 5, 10].map((m) => m * power).filter((size) => size >= rough * 0.999);
  const whole = (value: number) => Math.abs(value - Math.round(value)) < 1e-6;
  const step = sizes.find((size) => whole(low / size) && whole(high / size)) ?? sizes[0]!;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toFixed(6)));
}

function swatches({ classes }: Classes): HTMLElement {
  return element("ul", { class: "swatches" }, ...classes.map(({ name, colour, from, to }) => {
    const swatch = element("i", {});
    swatch.style.background = colour;
    const range = between(from, to);
    // The names of the exceedance classes are their ranges; once is enough.
    return element("li", {}, swatch, element("span", {}, name),
      range === name ? null : element("span", { class: "range" }, range));
  }));
}

function between(from: number | null, to: number | null): string {
  if (from === null) return `≤ ${to}`;
  return to === null ? `> ${from}` : `${from}–${to}`;
}
