/** What the reader has chosen to see: one object, one place where it changes, and its permalink. */

import { hasArchive, leadOf, type Run, type Spot, type Variable } from "./api";
import { variableTitle } from "./wording";

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

/** What a link or a press of a button asks for; it may not be offered. */
export type Wanted = Partial<Omit<Choice, "variable">> & { variable?: string };

/** Decimals of degrees that a link keeps, about 10 m; picked points have no more. */
const DECIMALS = 4;
/** No longer text of a link is repeated to the reader. */
const LONGEST_NAME = 20;

export const roundedSpot = ({ lat, lon }: Spot): Spot => ({
  lat: Number(lat.toFixed(DECIMALS)), lon: Number(lon.toFixed(DECIMALS)),
});

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

/** The choices that a permalink names. What only sets the view is left out if it is not valid. */
export function readHash(hash: string): Wanted {
  const entries = new URLSearchParams(hash.replace(/^#/, ""));
  const wanted: Wanted = {};
  const [run, lead, variable] = ["run", "lead", "variable"].map((name) => entries.get(name)?.slice(0, LONGEST_NAME));
  if (run) wanted.run = run;
  if (lead) wanted.lead = Number(lead);
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
    view && `view=${view.lat.toFixed(DECIMALS)},${view.lon.toFixed(DECIMALS)},${view.zoom.toFixed(2)}`,
    point && `point=${point.lat.toFixed(DECIMALS)},${point.lon.toFixed(DECIMALS)}`,
    choice.theme && `theme=${choice.theme}`,
  ];
  return `#${entries.filter(Boolean).join("&")}`;
}

export interface Settled {
  choice: Choice;
  /** Names of what was wanted but is not offered. */
  replaced: string[];
}

/** The nearest choice to the wanted one that the runs can show. There must be at least one run. */
export function settle(wanted: Wanted, runs: Run[]): Settled {
  const run = runs.find(({ id }) => id === wanted.run) ?? runs[0]!;
  const { lead, variables } = leadOf(run, wanted.lead ?? 1);
  const variable = oneOf(variables, wanted.variable ?? null) ?? "pm25";
  const stations = hasArchive(run) ? (wanted.stations ?? "off") : "off";
  const { view = null, point = null, theme = null } = wanted;
  const choice = { run: run.id, lead, variable, stations, view, point, theme };
  const differs = (name: keyof Choice) => wanted[name] !== undefined && wanted[name] !== choice[name];
  const replaced = [
    differs("run") && `the forecast made from ${wanted.run}`,
    differs("lead") && (Number.isFinite(wanted.lead) ? `T+${wanted.lead}` : "the lead of the link"),
    differs("variable") && `“${variableTitle(wanted.variable!)}”`,
    differs("stations") && "stations",
  ];
  return { choice, replaced: replaced.filter((name) => name !== false) };
}
