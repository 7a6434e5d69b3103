/** How the page writes days, ages, numbers and places. Days are UTC, so no time zone shifts them. */

import type { Place, Spot, Variable } from "./api";

const NEAR_KM = 30;
const KM_PER_DEGREE = 111.2;

const VARIABLE_TITLES: Record<Variable, string> = {
  pm25: "PM2.5",
  index: "Air quality index",
  exceedance: "Exceedance",
  change: "Change",
  truth: "Truth",
  error: "Error",
};
/** The name of a variable; one that is not known, as a link has it. */
export const variableTitle = (variable: string) => VARIABLE_TITLES[variable as Variable] ?? variable;

const dayFormat = (options: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  return (day: string) => format.format(new Date(`${day}T00:00:00Z`)).replace(",", "");
};

/** "Wed 26 Jan" */
export const weekday = dayFormat({ weekday: "short", day: "numeric", month: "short" });
/** "Wed 26 Jan 2022" */
export const fullDay = dayFormat({
  weekday: "short", day: "numeric", month: "short", year: "numeric",
});
/** "26 Jan" */
export const shortDay = dayFormat({ day: "numeric", month: "short" });

/** "made 3 h ago" */
export function age(hours: number): string {
  if (hours < 1 / 60) return "made just now";
  if (hours < 1) return `made ${Math.round(hours * 60)} min ago`;
  if (hours < 48) return `made ${Math.round(hours)} h ago`;
  return `made ${Math.round(hours / 24)} days ago`;
}

const oneDigit = new Intl.NumberFormat("en-GB", {
  minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false,
});

/** "41.3", with a true minus sign; a dash where the value is missing. */
export const concentration = (value: number | null | undefined) =>
  value == null ? "–" : oneDigit.format(value).replace("-", "−");

/** "+2.1" or "−0.4" */
export const signed = (value: number | null | undefined) =>
  value == null ? "–" : (value > 0 ? "+" : "") + concentration(value);

/** "45.465° N, 9.195° E" */
export function coordinates({ lat, lon }: Spot): string {
  const write = (angle: number, sides: string) =>
    `${Math.abs(angle).toFixed(3)}° ${angle < 0 ? sides[1] : sides[0]}`;
  return `${write(lat, "NS")}, ${write(lon, "EW")}`;
}

/** The nearest town within 30 km, with its distance, or null. */
export function nearestTown(places: Place[], spot: Spot): { name: string; km: number } | null {
  const squeeze = Math.cos((spot.lat * Math.PI) / 180);
  let nearest: { name: string; km: number } | null = null;
  for (const { name, lat, lon } of places) {
    const km = KM_PER_DEGREE * Math.hypot(lat - spot.lat, (lon - spot.lon) * squeeze);
    if (km <= (nearest?.km ?? NEAR_KM)) nearest = { name, km };
  }
  return nearest;
}
