/** The panel of one point: where it is, the value of each lead, and the chart. */

import {
  contains, getHistory, getPoint, hasArchive,
  type Classes, type History, type PointForecast, type Run, type Spot,
} from "./api";
import { drawChart, seriesOf } from "./chart";
import { byId, element } from "./element";
import type { Session } from "./session";
import { concentration, coordinates, nearestTown, weekday } from "./wording";

interface MapBeside {
  focus: () => void;
  hasKeyboardFocus: () => boolean;
  /** Pan so that the panel does not hide the point. */
  reveal: (spot: Spot) => void;
}

export function showPoint(session: Session, map: MapBeside): void {
  const panel = byId("point");
  const close = () => {
    const hadFocus = panel.contains(document.activeElement);
    session.choose({ point: null });
    if (hadFocus) map.focus();
  };
  document.addEventListener("keydown", ({ key, target }) => {
    const inSheet = target instanceof Element && target.closest("#choices.open");
    if (key === "Escape" && !panel.hidden && !inSheet) close();
  });

  let wanted = "";
  session.listen(async ({ run, choice: { point } }) => {
    const key = point ? `${run.id}/${run.version}/${point.lat}/${point.lon}` : "";
    if (key === wanted) return;
    wanted = key;
    panel.hidden = point === null;
    if (!point) return;
    const again = panel.childElementCount > 0 && panel.dataset["at"] === `${point.lat}/${point.lon}`;
    panel.dataset["at"] = `${point.lat}/${point.lon}`;
    // While a replay steps through the runs the old numbers stay, else the panel would blink.
    if (!again) panel.replaceChildren(head(session, point, close), hint("Reading the forecast…"));
    const body = await read(session, run, point);
    if (wanted !== key || !body) return;
    // The head stays, so that its close button keeps the focus.
    panel.replaceChildren(panel.firstElementChild!, ...body);
    if (again) return;
    map.reveal(point);
    if (map.hasKeyboardFocus()) panel.querySelector("h2")?.focus();
  });
}

function head({ places }: Session, spot: Spot, close: () => void): HTMLElement {
  const town = nearestTown(places, spot);
  const button = element("button", { type: "button", class: "close", "aria-label": "Close the point" }, "×");
  button.addEventListener("click", close);
  const name = town ? (town.km < 5 ? town.name : `${Math.round(town.km)} km from ${town.name}`) : "Chosen point";
  return element("div", { class: "point-head" },
    element("div", {}, element("h2", { tabindex: -1 }, name), element("p", {}, coordinates(spot))), button);
}

/** What to show below the head; null if the page has moved on to another version meanwhile. */
async function read(session: Session, run: Run, spot: Spot): Promise<HTMLElement[] | null> {
  if (!contains(run.bounds, spot)) return [hint("This point lies outside the forecast's map.")];
  try {
    const [point, history] = await Promise.all([
      getPoint(run, spot),
      hasArchive(run) ? getHistory(run, spot).catch((error: Error) => error) : null,
    ]);
    return describe(session, run, point, history);
  } catch (error) {
    const reason = await session.explain(error, run);
    return reason === null ? null : [hint(reason)];
  }
}

const hint = (text: string) => element("p", { class: "wait" }, text);

function describe(
  session: Session, run: Run, point: PointForecast, history: History | Error | null,
): HTMLElement[] {
  const { pm25, index } = session.legends;
  if (point.forecast.every((day) => day.pm25 === null))
    return [hint("No forecast here: the sea and land without data are left out.")];
  const values = element("ol", { class: "values" },
    ...point.forecast.map((day) => value(day, pm25.unit, index)));
  const failed = history instanceof Error;
  const warnings = [
    ...(point.quality === "good" ? [] : [hint("Some of the input was degraded here.")]),
    ...(failed ? [hint(`The days before and the stations could not be read. ${history.message}`)] : []),
  ];
  const chart = drawChart(seriesOf(run.id, point, failed ? null : history), run.id, pm25.unit);
  return [values, ...warnings, chart];
}

function value({ lead, valid, pm25, index }: PointForecast["forecast"][number], unit: string, { classes }: Classes) {
  const found = classes.find(({ name }) => name === index);
  const chip = element("span", { class: "chip" }, index ?? "no value");
  if (found) {
    chip.style.background = found.colour;
    chip.style.color = inkOn(found.colour);
  }
  return element("li", {},
    element("span", { class: "day" }, weekday(valid)),
    element("small", {}, `T+${lead}`),
    element("b", { "data-testid": `point-value-${lead}` }, concentration(pm25)),
    element("small", {}, unit),
    chip);
}

/** Black or white, whichever reads better on the colour (WCAG's relative luminance). */
function inkOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5]
    .map((i) => parseInt(colour.slice(i, i + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#111418" : "#ffffff";
}
