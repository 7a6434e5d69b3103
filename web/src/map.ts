/** The map itself: its controls, its limits, its view in the permalink, and picking a point on it. */

import { Map, Marker, NavigationControl, ScaleControl, setWorkerUrl } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import "maplibre-gl/dist/maplibre-gl.css";
import { baseStyle, loadBorders, paintBasemap } from "./basemap";
import { contains, type Run, type Spot } from "./api";
import { roundedSpot, type Wanted } from "./choice";
import { byId, element } from "./element";
import type { Session } from "./session";
import { MAP_COLOURS, reducedMotion, systemPrefersDark, themeOf } from "./theme";

const FARTHEST_ZOOM = 11;
/** Between a point and the panel about it. */
const MARGIN_PX = 28;

/** Room around the run, so that the whole of it can be seen in a window of any shape. */
function roomAround([west, south, east, north]: Run["bounds"]): [number, number, number, number] {
  const room = 0.9 * Math.max(east - west, north - south);
  return [
    Math.max(-179, west - room), Math.max(-80, south - room),
    Math.min(179, east + room), Math.min(84, north + room),
  ];
}

export async function openMap(session: Session): Promise<Map> {
  setWorkerUrl(new URL(workerUrl, document.baseURI).href);
  const map = newMap(session);
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new NavigationControl({ showCompass: false }), "top-left");
  map.addControl(new ScaleControl({ maxWidth: 96 }), "bottom-right");
  await new Promise<void>((done) => map.once("load", () => done()));
  loadBorders(map);
  followTheme(map, session);
  followRun(map, session);
  followView(map, session);
  pickPoints(map, session);
  return map;
}

function newMap(session: Session): Map {
  const { view } = session.choice;
  return new Map({
    container: "map",
    style: baseStyle(),
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    renderWorldCopies: false,
    maxZoom: FARTHEST_ZOOM,
    maxBounds: roomAround(session.run.bounds),
    ...(view
      ? { center: [view.lon, view.lat] as [number, number], zoom: view.zoom }
      : { bounds: session.run.bounds, fitBoundsOptions: { padding: 24 } }),
  });
}

function followTheme(map: Map, session: Session): void {
  let painted: string | null = null;
  const paint = () => {
    const theme = themeOf(session.choice);
    if (theme !== painted) paintBasemap(map, MAP_COLOURS[(painted = theme)]);
  };
  session.listen(paint);
  systemPrefersDark.addEventListener("change", paint);
}

/** Another run may be of another part of the world. */
function followRun(map: Map, session: Session): void {
  let { bounds } = session.run;
  session.listen(({ run }) => {
    if (String(run.bounds) === String(bounds)) return;
    bounds = run.bounds;
    const { lat, lng } = map.getCenter();
    map.setMaxBounds(roomAround(bounds));
    if (!contains(bounds, { lat, lon: lng })) map.fitBounds(bounds, { padding: 24, animate: false });
  });
}

function followView(map: Map, session: Session): void {
  map.on("moveend", () => {
    const { lat, lng } = map.getCenter();
    session.choose({ view: { lat, lon: lng, zoom: map.getZoom() } });
  });
}

/** Move to a view that came from a permalink rather than from the map. */
export function showView(map: Map, { view }: Pick<Wanted, "view">): void {
  if (view) map.jumpTo({ center: [view.lon, view.lat], zoom: view.zoom });
}

function pickPoints(map: Map, session: Session): void {
  const pick = ({ lat, lng }: { lat: number; lng: number }) =>
    session.choose({ point: roundedSpot({ lat, lon: lng }) });
  map.on("click", ({ lngLat }) => pick(lngLat));
  map.getCanvas().setAttribute(
    "aria-label", "Map. Arrow keys move, plus and minus zoom, Enter reads the value at the centre.",
  );
  map.getCanvas().addEventListener("keydown", ({ key }) => {
    if (key === "Enter") pick(map.getCenter());
  });

  const pin = element("div", { class: "pin", "aria-hidden": "true" });
  const marker = new Marker({ element: pin });
  let marked: string | null = null;
  session.listen(({ choice: { point } }) => {
    const wanted = point && `${point.lat},${point.lon}`;
    if (wanted === marked) return;
    marked = wanted;
    if (!point) return void marker.remove();
    marker.setLngLat([point.lon, point.lat]).addTo(map);
  });
}

/** Pan just enough that the point panel does not hide the point that it is about. */
export function reveal(map: Map, { lat, lon }: Spot): void {
  const panel = byId("point").getBoundingClientRect();
  const frame = map.getContainer().getBoundingClientRect();
  const at = map.project([lon, lat]);
  const [x, y] = [frame.left + at.x, frame.top + at.y];
  if (x < panel.left - MARGIN_PX || y < panel.top - MARGIN_PX || y > panel.bottom + MARGIN_PX) return;
  const beside = panel.left - frame.left > frame.width / 4;
  const shift: [number, number] = beside
    ? [x - panel.left + 2 * MARGIN_PX, 0]
    : [0, y - (frame.top + panel.top) / 2];
  map.panBy(shift, { animate: !reducedMotion.matches });
}
