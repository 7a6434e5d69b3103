/** Parts of the world with fine borders (10m); everywhere else, and from afar, the coarse ones (50m) are drawn. */

export type Box = [west: number, south: number, east: number, north: number];

export const REGIONS = {
  europe: [-32, 24, 62, 74],
  "south-asia": [55, 0, 105, 42],
  "north-america": [-172, 5, -48, 76],
} satisfies Record<string, Box>;
export type Region = keyof typeof REGIONS;

/** The region that all of a view lies in, or null. */
export function regionAround([west, south, east, north]: Box): Region | null {
  const holds = ([left, bottom, right, top]: Box) => left <= west && bottom <= south && east <= right && north <= top;
  const found = Object.entries(REGIONS).find(([, box]) => holds(box as Box));
  return found ? (found[0] as Region) : null;
}
