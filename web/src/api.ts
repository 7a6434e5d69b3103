/** What the server offers, as typed functions. Concentrations are in µg m⁻³, ages in hours. */

const HOUR_MS = 3_600_000;

export const VARIABLES = ["pm25", "index", "exceedance", "change", "truth", "error"] as const;
export type Variable = (typeof VARIABLES)[number];

export interface Lead {
  lead: number;
  valid: string;
  variables: Variable[];
}

export interface Run {
  id: string;
  version: string;
  made: string;
  stale: boolean;
  /** "made 40 h ago"; empty if the run is not stale. Absent from older servers. */
  stale_reason?: string;
  method: string;
  simulated: boolean;
  degraded: string[];
  bounds: [west: number, south: number, east: number, north: number];
  leads: Lead[];
}

/** What the server offers, newest run first, and when it said so. */
export interface Offer {
  runs: Run[];
  /** The server's clock as it answered, and this machine's at the same moment (ms since 1970). */
  now: string;
  readAt: number;
  /** Changes with the colours of the tiles; empty from older servers. */
  style: string;
  archive: { source: string; simulated: boolean } | null;
}

export interface Shade {
  kind: "shade";
  label: string;
  unit: string;
  note: string;
  stops: { value: number; colour: string }[];
}

export interface Classes {
  kind: "classes";
  label: string;
  unit: string;
  note: string;
  classes: { name: string; colour: string; from: number | null; to: number | null }[];
}

export interface Legends {
  pm25: Shade;
  truth: Shade;
  change: Shade;
  error: Shade;
  exceedance: Classes;
  index: Classes;
}

export interface Day {
  day: string;
  pm25: number | null;
}

export interface PointForecast {
  lat: number;
  lon: number;
  forecast: { lead: number; valid: string; pm25: number | null; index: string | null }[];
  quality: string;
}

export interface NearbyStation {
  id: string;
  type: string;
  area: string;
  lat: number;
  lon: number;
  distance_km: number;
  days: Day[];
}

export interface History {
  days: Day[];
  stations: NearbyStation[];
}

export interface StationNumbers {
  id: string;
  type: string;
  area: string;
  observed: number | null;
  forecast: number | null;
  difference: number | null;
}
export type Stations = GeoJSON.FeatureCollection<GeoJSON.Point, StationNumbers>;

export interface Place {
  name: string;
  lat: number;
  lon: number;
  population: number;
}

export interface Spot {
  lat: number;
  lon: number;
}

/** The server answered 404: the run's version is gone, or it never offered this. */
export class NotOffered extends Error {}

async function get<T>(path: string): Promise<T> {
  const response = await fetch(new URL(`api/${path}`, document.baseURI));
  if (response.ok) return (await response.json()) as T;
  const detail = await response.json().then(
    (body: { detail?: unknown }) => detailText(body.detail) || response.statusText,
    () => response.statusText,
  );
  if (response.status === 404) throw new NotOffered(detail);
  throw new Error(`The server answered ${response.status}: ${detail}`);
}

/** A refused parameter (422) is told as a list of objects, everything else as a sentence. */
function detailText(detail: unknown): string {
  if (Array.isArray(detail)) return detail.map(detailText).filter(Boolean).join("; ");
  if (detail && typeof detail === "object") return "msg" in detail ? String(detail.msg) : JSON.stringify(detail);
  return detail == null ? "" : String(detail);
}

const below = (run: Run, rest: string) => `runs/${run.id}/${run.version}/${rest}`;
const at = ({ lat, lon }: Spot) => `lat=${lat.toFixed(5)}&lon=${lon.toFixed(5)}`;

export async function getOffer(): Promise<Offer> {
  const answer = await get<Partial<Offer> & { runs: Run[] }>("runs");
  const readAt = Date.now();
  const now = answer.now ?? new Date(readAt).toISOString();
  return { runs: answer.runs, now, readAt, style: answer.style ?? "", archive: answer.archive ?? null };
}
export const getLegends = () => get<Legends>("legend");
export const getPlaces = () => get<Place[]>("places");
export const getPoint = (run: Run, spot: Spot) =>
  get<PointForecast>(below(run, `point?${at(spot)}`));
export const getHistory = (run: Run, spot: Spot) => get<History>(below(run, `history?${at(spot)}`));
export const getStations = (run: Run, lead: number) =>
  get<Stations>(below(run, `stations/${lead}`));

/** The address of a frame's tiles; {z}, {x} and {y} stay open for the map to fill in. */
export function tileAddress(run: Run, variable: Variable, lead: number, style: string): string {
  const root = new URL("api/", document.baseURI).href;
  const query = style && `?style=${encodeURIComponent(style)}`;
  return `${root}${below(run, `tiles/${variable}/${lead}`)}/{z}/{x}/{y}.png${query}`;
}

export const isSame = (a: Run, b: Run) => a.id === b.id && a.version === b.version;

/** Whether the server knows days besides the forecast. Asking first would put a 404 in the console. */
export const hasArchive = (run: Run) =>
  run.leads.some(({ variables }) => variables.includes("change") || variables.includes("truth"));

/** How long ago the run was made, by the server's clock and the time since it was read. */
export const ageHours = (run: Run, { now, readAt }: Offer) =>
  (Date.parse(now) - Date.parse(run.made) + Date.now() - readAt) / HOUR_MS;

export const leadOf = (run: Run, lead: number) =>
  run.leads.find((offered) => offered.lead === lead) ?? run.leads[0]!;

export function contains([west, south, east, north]: Run["bounds"], { lat, lon }: Spot): boolean {
  return west <= lon && lon <= east && south <= lat && lat <= north;
}
