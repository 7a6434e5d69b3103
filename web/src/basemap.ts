/** Sea, land, coasts and borders from Natural Earth. There is no map text, so no fonts are needed. */

import type { GeoJSONSource, Map, StyleSpecification } from "maplibre-gl";
import { feature, mesh } from "topojson-client";
import { regionAround, type Region } from "./regions";
import { MAP_COLOURS, type MapColours } from "./theme";

/** Below this zoom the coarse borders are within a pixel of the fine ones. */
const FINE_BORDERS_ZOOM = 5.5;

/** Frames are put under this layer, so that coasts and borders stay visible. */
export const ABOVE_FRAMES = "borders";

const nothing = { type: "FeatureCollection" as const, features: [] };
const width = (thin: number, thick: number) =>
  ["interpolate", ["linear"], ["zoom"], 3, thin, 8, thick] as [
    "interpolate", ["linear"], ["zoom"], number, number, number, number,
  ];

export function baseStyle(): StyleSpecification {
  const { sea, land, line } = MAP_COLOURS.light;
  return {
    version: 8,
    sources: {
      land: { type: "geojson", data: nothing },
      borders: { type: "geojson", data: nothing },
      coast: { type: "geojson", data: nothing },
    },
    layers: [
      { id: "sea", type: "background", paint: { "background-color": sea } },
      { id: "land", type: "fill", source: "land", paint: { "fill-color": land } },
      {
        id: "borders", type: "line", source: "borders",
        paint: { "line-color": line, "line-width": width(0.6, 1.3), "line-opacity": 0.6 },
      },
      {
        id: "coast", type: "line", source: "coast",
        paint: { "line-color": line, "line-width": width(0.7, 1.2), "line-opacity": 0.75 },
      },
    ],
  };
}

export function paintBasemap(map: Map, { sea, land, line }: MapColours): void {
  map.setPaintProperty("sea", "background-color", sea);
  map.setPaintProperty("land", "fill-color", land);
  map.setPaintProperty("borders", "line-color", line);
  map.setPaintProperty("coast", "line-color", line);
}

const ATLASES = {
  world: () => import("virtual:atlas/world"),
  europe: () => import("virtual:atlas/europe"),
  "south-asia": () => import("virtual:atlas/south-asia"),
  "north-america": () => import("virtual:atlas/north-america"),
} satisfies Record<"world" | Region, unknown>;

function atlasFor(map: Map): keyof typeof ATLASES {
  const [[west, south], [east, north]] = map.getBounds().toArray();
  return (map.getZoom() >= FINE_BORDERS_ZOOM && regionAround([west, south, east, north])) || "world";
}

/** Show coarse or fine borders as the view asks for. */
export function loadBorders(map: Map): void {
  let shown = "";
  const load = async () => {
    const wanted = atlasFor(map);
    if (shown === wanted) return;
    shown = wanted;
    const { default: topology } = await ATLASES[wanted]();
    if (shown !== wanted) return;
    const { countries } = topology.objects;
    const show = (source: string, data: GeoJSON.GeoJSON) =>
      map.getSource<GeoJSONSource>(source)?.setData(data);
    show("land", feature(topology, countries));
    show("borders", mesh(topology, countries, (a, b) => a !== b));
    show("coast", mesh(topology, countries, (a, b) => a === b));
  };
  // Without borders the map still tells its numbers; they are asked for again after the next move.
  const tryToLoad = () => void load().catch(() => (shown = ""));
  map.on("moveend", tryToLoad);
  tryToLoad();
}
