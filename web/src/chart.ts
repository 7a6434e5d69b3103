/** The chart of a point: the field before, the forecast, the truth where known, and stations nearby. */

import type { Day, History, PointForecast } from "./api";
import { element, svg } from "./element";
import { ticks } from "./legend";
import { concentration, shortDay, weekday } from "./wording";

const SIZE = { width: 348, height: 190 };
const EDGE = { left: 30, right: 10, top: 20, bottom: 22 };
const DAY_MS = 86_400_000;

export interface Series {
  kind: "field" | "forecast" | "truth" | "station-1" | "station-2" | "station-3";
  name: string;
  days: Day[];
}

/** All that the chart shows; days after the start day are what the forecast can be held against. */
export function seriesOf(start: string, point: PointForecast, history: History | null): Series[] {
  const days = history?.days ?? [];
  const forecast = point.forecast.map(({ valid, pm25 }) => ({ day: valid, pm25 }));
  const stations = (history?.stations ?? []).slice(0, 3).map((station, i) => ({
    kind: `station-${i + 1}` as Series["kind"],
    name: `${station.id}, ${station.area} ${station.type}, ${station.distance_km.toFixed(1)} km`,
    days: station.days,
  }));
  const all: Series[] = [
    { kind: "field", name: "1-km field", days: days.filter(({ day }) => day <= start) },
    { kind: "forecast", name: "forecast", days: forecast },
    { kind: "truth", name: "truth of that day", days: days.filter(({ day }) => day > start) },
    ...stations,
  ];
  return all.filter((series) => series.days.some(({ pm25 }) => pm25 !== null));
}

const dayNumber = (day: string) => Date.parse(`${day}T00:00:00Z`) / DAY_MS;
const dayText = (number: number) => new Date(number * DAY_MS).toISOString().slice(0, 10);

interface Axes {
  first: number;
  last: number;
  top: number;
  x: (day: string) => number;
  y: (value: number) => number;
}

function axesOf(series: Series[], start: string): Axes {
  const days = series.flatMap(({ days }) => days.map(({ day }) => dayNumber(day)));
  const values = series.flatMap(({ days }) => days.map(({ pm25 }) => pm25 ?? 0));
  const first = Math.min(dayNumber(start), ...days);
  const last = Math.max(dayNumber(start) + 1, ...days);
  const highest = Math.max(10, ...values) * 1.05;
  const step = ticks(0, highest, 4)[1]!;
  const top = Math.ceil(highest / step) * step;
  const wide = SIZE.width - EDGE.left - EDGE.right;
  const high = SIZE.height - EDGE.top - EDGE.bottom;
  return {
    first, last, top,
    x: (day) => EDGE.left + (wide * (dayNumber(day) - first)) / (last - first),
    y: (value) => EDGE.top + high * (1 - value / top),
  };
}

export function drawChart(series: Series[], start: string, unit: string): HTMLElement {
  const axes = axesOf(series, start);
  const picture = svg("svg", {
    viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, tabindex: 0, role: "group",
    "aria-label": "Chart of daily PM2.5. Left and right arrow keys read out one day after another.",
  }, ...grid(axes, unit), ...startMark(axes, start), ...series.map((one) => line(one, series, axes, start)).reverse());
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  followDay(picture, readout, series, axes);
  return element("div", { class: "chart" }, picture, readout, key(series), table(series));
}

function grid(axes: Axes, unit: string): SVGElement[] {
  const text = (x: number, y: number, words: string, anchor: string) =>
    svg("text", { x, y, "text-anchor": anchor }, words);
  const right = SIZE.width - EDGE.right;
  const rows = ticks(0, axes.top, 4).flatMap((value) => [
    svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: axes.y(value), y2: axes.y(value) }),
    text(EDGE.left - 6, axes.y(value) + 3.5, String(value), "end"),
  ]);
  const every = Math.max(1, Math.ceil((axes.last - axes.first) / 4));
  const days: SVGElement[] = [];
  for (let day = axes.last; day >= axes.first; day -= every) {
    const x = axes.x(dayText(day));
    const anchor = x > right - 16 ? "end" : x < EDGE.left + 12 ? "start" : "middle";
    days.push(text(x, SIZE.height - 6, shortDay(dayText(day)), anchor));
  }
  return [...rows, ...days, text(0, 9, unit, "start")];
}

function startMark(axes: Axes, start: string): SVGElement[] {
  const x = axes.x(start);
  const anchor = x > SIZE.width / 2 ? "end" : "start";
  return [
    svg("line", { class: "start", x1: x, x2: x, y1: EDGE.top - 6, y2: SIZE.height - EDGE.bottom }),
    svg("text", { class: "start", x: x + (anchor === "end" ? -5 : 5), y: 12, "text-anchor": anchor }, "start day"),
  ];
}

/** A line from day to day, broken where a day is missing. */
function line({ kind, days }: Series, all: Series[], axes: Axes, start: string): SVGElement {
  const known = days.filter(({ pm25 }) => pm25 !== null);
  // The forecast sets out from the field of the start day, so its line does too.
  const before = kind === "forecast" || kind === "truth" ? all.find((one) => one.kind === "field") : undefined;
  const onStart = before?.days.filter(({ day, pm25 }) => day === start && pm25 !== null) ?? [];
  const joined = [...onStart, ...known];
  const follows = (i: number) => i > 0 && dayNumber(joined[i]!.day) - dayNumber(joined[i - 1]!.day) === 1;
  const path = joined.map(({ day, pm25 }, i) =>
    `${follows(i) ? "L" : "M"}${axes.x(day).toFixed(1)} ${axes.y(pm25!).toFixed(1)}`);
  return svg("g", { class: `series ${kind}` },
    kind.startsWith("station") ? null : svg("path", { d: path.join("") }),
    ...known.map(({ day, pm25 }) => mark(kind, axes.x(day), axes.y(pm25!))));
}

/** A shape for each kind, so that colour is never the only difference. */
function mark(kind: Series["kind"], x: number, y: number): SVGElement {
  if (kind === "station-2") return svg("rect", { x: x - 2.4, y: y - 2.4, width: 4.8, height: 4.8 });
  if (kind === "station-3") return svg("path", { class: "shape", d: `M${x} ${y - 3.2}l3 5.4h-6z` });
  const radius = { field: 1.4, forecast: 4, truth: 3.2, "station-1": 2.6 }[kind];
  return svg("circle", { cx: x, cy: y, r: radius });
}

function key(series: Series[]): HTMLElement {
  return element("ul", { class: "key" }, ...series.map(({ kind, name }) => {
    const sample = svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" },
      svg("g", { class: `series ${kind}` },
        kind.startsWith("station") ? null : svg("path", { d: "M1 5H21" }), mark(kind, 11, 5)));
    return element("li", {}, sample, element("span", {}, kind.startsWith("station") ? `station ${name}` : name));
  }));
}

/** The day under the pointer, or the one that the arrow keys have reached, in words below the chart. */
function followDay(picture: SVGSVGElement, readout: HTMLElement, series: Series[], axes: Axes): void {
  const guide = svg("line", { class: "guide", y1: EDGE.top, y2: SIZE.height - EDGE.bottom, visibility: "hidden" });
  picture.append(guide);
  let current = axes.last;
  const read = (number: number) => {
    current = Math.min(axes.last, Math.max(axes.first, number));
    const day = dayText(current);
    const found = series.flatMap(({ kind, name, days }) => {
      const value = days.find((one) => one.day === day)?.pm25;
      const short = kind.startsWith("station") ? name.split(",")[0]! : name;
      return value == null ? [] : [`${short} ${concentration(value)}`];
    });
    readout.textContent = `${weekday(day)}: ${found.join(" · ") || "no value"}`;
    guide.setAttribute("x1", String(axes.x(day)));
    guide.setAttribute("x2", String(axes.x(day)));
    guide.setAttribute("visibility", "visible");
  };
  const rest = () => {
    guide.setAttribute("visibility", "hidden");
    readout.textContent = "";
  };
  picture.addEventListener("pointermove", ({ clientX }) => {
    const box = picture.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * SIZE.width;
    const share = (x - EDGE.left) / (SIZE.width - EDGE.left - EDGE.right);
    read(axes.first + Math.round(share * (axes.last - axes.first)));
  });
  picture.addEventListener("pointerleave", rest);
  picture.addEventListener("blur", rest);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    read(guide.getAttribute("visibility") === "hidden" ? current : current + step);
  });
}

/** The same numbers as text, for those who cannot see the chart. */
function table(series: Series[]): HTMLElement {
  const days = [...new Set(series.flatMap((one) => one.days.map(({ day }) => day)))].sort();
  const value = (one: Series, day: string) => concentration(one.days.find((item) => item.day === day)?.pm25);
  const rows = days.map((day) => element("tr", {},
    element("th", { scope: "row" }, weekday(day)), ...series.map((one) => element("td", {}, value(one, day)))));
  const head = element("tr", {}, element("th", { scope: "col" }, "day"),
    ...series.map(({ name }) => element("th", { scope: "col" }, name)));
  return element("table", { class: "unseen" }, element("caption", {}, "Daily PM2.5 in µg m⁻³"),
    element("thead", {}, head), element("tbody", {}, ...rows));
}
