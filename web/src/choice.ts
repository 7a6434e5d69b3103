/** What the reader has chosen to see: one object, one place where it changes, and its permalink. */

import { hasArchive, leadOf, VARIABLES, type Run, type Spot, type Variable } from "./api";

export const STATION_COLOURS = ["off", "observed", "difference"] as const;
export type StationColour = (typeof STATION_COLOURS)[number];
export type Theme = "light" | "dark";
export interface View extends Spot {
  zoom: number;
}

export interface Choice {
  run: string;
  lead: number;
  variable: Variable;
  stations: StationColour;
  view: View | null;
  point: Spot | null;
  /** null follows the system. */
  theme: Theme | null;
}

const oneOf = <T extends string>(offered: readonly T[], text: string | null): T | undefined =>
  offered.find((item) => item === text);

function numbers(text: string | null, limits: [number, number][]): number[] | null {
  const found = (text ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
  const good =
    found.length === limits.length &&
    found.every((value, i) => value >= limits[i]![0] && value <= limits[i]![1]);
  return good ? found : null;
}

const [LAT, LON, ZOOM]: [number, number][] = [[-85, 85], [-180, 180], [0, 22]];

/** The choices that a permalink names; whatever is not valid is left out. */
export function readHash(hash: string): Partial<Choice> {
  const entries = new URLSearchParams(hash.replace(/^#/, ""));
  const wanted: Partial<Choice> = {};
  const run = entries.get("run");
  if (run && /^\d{4}-\d{2}-\d{2}$/.test(run)) wanted.run = run;
  const lead = Number(entries.get("lead"));
  if (Number.isInteger(lead) && lead > 0) wanted.lead = lead;
  const variable = oneOf(VARIABLES, entries.get("variable"));
  if (variable) wanted.variable = variable;
  const stations = oneOf(STATION_COLOURS, entries.get("stations"));
  if (stations) wanted.stations = stations;
  const view = numbers(entries.get("view"), [LAT!, LON!, ZOOM!]);
  if (view) wanted.view = { lat: view[0]!, lon: view[1]!, zoom: view[2]! };
  const point = numbers(entries.get("point"), [LAT!, LON!]);
  if (point) wanted.point = { lat: point[0]!, lon: point[1]! };
  const theme = oneOf(["light", "dark"] as const, entries.get("theme"));
  if (theme) wanted.theme = theme;
  return wanted;
}

export function writeHash(choice: Choice): string {
  const { view, point } = choice;
  const entries = [
    `run=${choice.run}`,
    `lead=${choice.lead}`,
    `variable=${choice.variable}`,
    `stations=${choice.stations}`,
    view && `view=${view.lat.toFixed(4)},${view.lon.toFixed(4)},${view.zoom.toFixed(2)}`,
    point && `point=${point.lat.toFixed(4)},${point.lon.toFixed(4)}`,
    choice.theme && `theme=${choice.theme}`,
  ];
  return `#${entries.filter(Boolean).join("&")}`;
}

/** The nearest choice to the wanted one that the runs can show. There must be at least one run. */
export function settle(wanted: Partial<Choice>, runs: Run[]): Choice {
  const run = runs.find(({ id }) => id === wanted.run) ?? runs[0]!;
  const { lead, variables } = leadOf(run, wanted.lead ?? 1);
  const variable = wanted.variable && variables.includes(wanted.variable) ? wanted.variable : "pm25";
  return {
    run: run.id,
    lead,
    variable,
    stations: hasArchive(run) ? (wanted.stations ?? "off") : "off",
    view: wanted.view ?? null,
    point: wanted.point ?? null,
    theme: wanted.theme ?? null,
  };
}
