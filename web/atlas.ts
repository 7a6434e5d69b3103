/** A vite plugin: borders from Natural Earth, the world coarse and some regions fine, each loaded when needed. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Plugin } from "vite";
import { REGIONS, type Box, type Region } from "./src/regions.ts";

const ANTARCTICA = "010"; // no forecast is made there, and its ring runs along the pole
const PREFIX = "virtual:atlas/";
const locate = createRequire(import.meta.url).resolve;

type Point = [number, number];
type Arc = Point[];
type Polygon = number[][];
type Shape = { id?: string } & (
  | { type: "Polygon"; arcs: Polygon }
  | { type: "MultiPolygon"; arcs: Polygon[] }
);
interface Atlas {
  type: "Topology";
  transform: { scale: Point; translate: Point };
  objects: { countries: { type: "GeometryCollection"; geometries: Shape[] } };
  arcs: Arc[];
}

/** `virtual:atlas/world` and `virtual:atlas/<region>` are modules whose default export is a topology. */
export function atlas(): Plugin {
  return {
    name: "atlas",
    resolveId: (id) => (id.startsWith(PREFIX) ? `\0${id}` : null),
    load(id) {
      if (!id.startsWith(`\0${PREFIX}`)) return null;
      const name = id.slice(PREFIX.length + 1);
      const box = REGIONS[name as Region] as Box | undefined;
      const file = locate(`world-atlas/countries-${box ? "10m" : "50m"}.json`);
      const cropped = crop(JSON.parse(readFileSync(file, "utf8")) as Atlas, box ?? [-180, -90, 180, 90]);
      // A string is parsed by JSON.parse about twice as fast as by the JavaScript parser.
      return `export default JSON.parse(${JSON.stringify(JSON.stringify(cropped))})`;
    },
  };
}

const forward = (index: number) => (index < 0 ? ~index : index);

/** The atlas without the polygons that lie wholly outside the box, its arcs numbered anew. */
function crop(world: Atlas, box: Box): Atlas {
  const places = world.arcs.map((arc) => degrees(arc, world.transform));
  const inside = places.map((points) => touches(points, box));
  const arcs: Arc[] = [];
  const renumbered = new Map<number, number>();
  const renumber = (index: number, turn: number): number => {
    const old = forward(index);
    if (!renumbered.has(old)) renumbered.set(old, arcs.push(eastward(world.arcs[old]!, places[old]!, turn)) - 1);
    const found = renumbered.get(old)!;
    return index < 0 ? ~found : found;
  };
  const fullTurn = Math.round(360 / world.transform.scale[0]);
  const geometries = world.objects.countries.geometries.filter(({ id }) => id !== ANTARCTICA).flatMap((shape): Shape[] => {
    const polygons = (shape.type === "Polygon" ? [shape.arcs] : (shape.arcs ?? []))
      .filter((rings) => rings[0]!.some((index) => inside[forward(index)]))
      .map((rings) => {
        const turn = crossesDateLine(rings[0]!, places) ? fullTurn : 0;
        return rings.map((ring) => ring.map((index) => renumber(index, turn)));
      });
    return polygons.length ? [{ type: "MultiPolygon", arcs: polygons }] : [];
  });
  const countries = { type: "GeometryCollection" as const, geometries };
  return { type: "Topology", transform: world.transform, objects: { countries }, arcs };
}

/** An arc is stored as whole steps from point to point. */
function degrees(arc: Arc, { scale, translate }: Atlas["transform"]): Arc {
  let [x, y] = [0, 0];
  return arc.map(([dx, dy]): Point => {
    x += dx;
    y += dy;
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
  });
}

/** No country but those across the date line (Russia, Fiji) is half a turn wide. */
function crossesDateLine(ring: number[], places: Arc[]): boolean {
  const lons = ring.flatMap((index) => places[forward(index)]!.map(([lon]) => lon));
  return Math.max(...lons) - Math.min(...lons) > 180;
}

/** The arc with its western longitudes moved a turn east, else a coast would be drawn right across the map. */
function eastward(arc: Arc, places: Arc, turn: number): Arc {
  let before = 0;
  return arc.map(([dx, dy], i): Point => {
    const shift = places[i]![0] < 0 ? turn : 0;
    const step = dx + shift - before;
    before = shift;
    return [step, dy];
  });
}

function touches(points: Arc, [west, south, east, north]: Box): boolean {
  const [lons, lats] = [points.map(([lon]) => lon), points.map(([, lat]) => lat)];
  return (
    Math.max(...lons) >= west && Math.min(...lons) <= east &&
    Math.max(...lats) >= south && Math.min(...lats) <= north
  );
}
