/** Stations as circles in the map's own colours: what they observed, or by how much the forecast was off. */

import {
  Popup, type ExpressionSpecification, type GeoJSONSource, type Map, type MapLayerMouseEvent,
} from "maplibre-gl";
import { getStations, NotOffered, type Run, type Shade, type StationNumbers, type Stations } from "./api";
import type { TellStations } from "./controls";
import { element } from "./element";
import type { Readiness } from "./readiness";
import type { Session } from "./session";
import { concentration, signed } from "./wording";

const LAYER = "stations";
type Property = "observed" | "difference";
const nothing: Stations = { type: "FeatureCollection", features: [] };

/** Colour by a property, as the legend of that quantity has it. */
function byLegend({ stops }: Shade, property: string): ExpressionSpecification {
  const steps = stops.flatMap(({ value, colour }) => [value, colour]);
  return [
    "interpolate", ["linear"], ["get", property], ...steps,
  ] as unknown as ExpressionSpecification;
}

/** Returns how to read the stations of another day before it is shown. */
export function showStations(
  map: Map, session: Session, readiness: Readiness, tell: TellStations,
): { prepare: (run: Run, lead: number) => Promise<void> } {
  map.addSource(LAYER, { type: "geojson", data: nothing });
  map.addLayer({
    id: LAYER, type: "circle", source: LAYER,
    paint: {
      "circle-radius": ["interpolate", ["linear"], ["zoom"], 3, 3.2, 6, 5.5, 9, 9],
      "circle-stroke-width": ["interpolate", ["linear"], ["zoom"], 3, 0.8, 8, 1.6],
      "circle-stroke-color": "#14181d",
    },
  });
  const closePopup = offerPopup(map, session.legends.pm25.unit);

  const dayOf = (run: Run, lead: number) => `${run.id}/${run.version}/${lead}`;
  let ahead: { day: string; all: Stations } | null = null;
  let wanted = "off";
  let release = () => {};
  session.listen(({ run, choice: { stations, lead } }) => {
    const key = stations === "off" ? "off" : `${dayOf(run, lead)}/${stations}`;
    if (key === wanted) return;
    wanted = key;
    release(); // nobody waits for the answer about another day
    closePopup();
    if (stations === "off") return draw(map, nothing);
    if (ahead?.day === dayOf(run, lead)) return drawBy(map, session, ahead.all, stations);
    draw(map, nothing); // else the circles of another day would stand on this one
    release = readiness.hold();
    void readAndDraw(run, lead, stations, () => wanted === key).finally(release);
  });

  async function readAndDraw(
    run: Run, lead: number, property: Property, isWanted: () => boolean,
  ): Promise<void> {
    try {
      const all = await getStations(run, lead);
      tell(run, lead, null);
      if (isWanted()) drawBy(map, session, all, property);
    } catch (error) {
      const reason = await session.explain(error, run);
      if (reason === null) return;
      const lasting = error instanceof NotOffered;
      tell(run, lead, { lasting, reason: lasting ? reason : `Could not be read. ${reason}` });
      if (isWanted() && !lasting) session.say(`The stations could not be read. ${reason}`);
    }
  }

  return {
    async prepare(run, lead) {
      if (session.choice.stations === "off" || ahead?.day === dayOf(run, lead)) return;
      const all = await getStations(run, lead).catch(() => null); // asked and told of again when it is shown
      ahead = all && { day: dayOf(run, lead), all };
    },
  };
}

const draw = (map: Map, data: Stations) => map.getSource<GeoJSONSource>(LAYER)?.setData(data);

function drawBy(map: Map, session: Session, all: Stations, property: Property): void {
  const { error, pm25 } = session.legends;
  const known = all.features.filter(({ properties }) => properties[property] !== null);
  map.setPaintProperty(LAYER, "circle-color", byLegend(property === "difference" ? error : pm25, property));
  draw(map, { ...all, features: known });
  if (known.length === 0) session.say("No station has a value for this day.");
}

/** Returns how to close it. */
function offerPopup(map: Map, unit: string): () => void {
  const popup = new Popup({ closeButton: false, focusAfterOpen: false, offset: 10, maxWidth: "260px" });
  const open = ({ features }: MapLayerMouseEvent) => {
    const found = features?.[0];
    if (!found || found.geometry.type !== "Point") return;
    const [lon, lat] = found.geometry.coordinates as [number, number];
    popup.setLngLat([lon, lat])
      .setDOMContent(describe(found.properties as StationNumbers, unit)).addTo(map);
    map.getCanvas().style.cursor = "pointer";
  };
  const close = () => {
    popup.remove();
    map.getCanvas().style.cursor = "";
  };
  map.on("mousemove", LAYER, open);
  map.on("click", LAYER, open);
  map.on("mouseleave", LAYER, close);
  return close;
}

function describe(station: StationNumbers, unit: string): HTMLElement {
  const row = (name: string, value: string) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value));
  return element("div", { class: "station-popup" },
    element("strong", {}, station.id),
    element("span", {}, ` ${station.area} ${station.type}`),
    element("dl", {},
      row("observed", `${concentration(station.observed)} ${unit}`),
      row("forecast", `${concentration(station.forecast)} ${unit}`),
      row("difference", `${signed(station.difference)} ${unit}`)));
}
