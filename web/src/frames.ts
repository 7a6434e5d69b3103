/** The coloured field. The old frame stays until all tiles of the new one are there, so replay never flashes. */

import { addProtocol, type Map } from "maplibre-gl";
import { tileAddress, type Run } from "./api";
import { ABOVE_FRAMES } from "./basemap";
import type { Choice } from "./choice";
import type { Readiness } from "./readiness";
import type { Session } from "./session";
import { reducedMotion } from "./theme";

/** Finest tiles that are asked for; a 1-km pixel is then about nine tile pixels wide, hence evenly square. */
const FINEST_TILES = 10;
/** From this zoom on, one pixel of the field is larger than one of the screen. */
const NATIVE_ZOOM = 6.5;
const CROSS_FADE_MS = 220;
const PROTOCOL = "frame";

interface Frame {
  id: string;
  address: string;
  release: () => void;
}

export class Frames {
  private shown: Frame | null = null;
  private coming: Frame | null = null;
  private waiting: (() => void)[] = [];
  private made = 0;

  constructor(private map: Map, session: Session, private readiness: Readiness) {
    readTiles(session, () => map.triggerRepaint());
    map.on("render", () => this.swapWhenLoaded());
    // The reader has been told of a tile that failed; everything else belongs in the console.
    map.on("error", (event) => "sourceId" in event || console.error(event.error));
    session.listen(({ run, choice }) => this.show(run, choice));
  }

  /** Resolves when the frame of the current choice is on the screen. */
  loaded(): Promise<void> {
    return this.coming ? new Promise((done) => this.waiting.push(done)) : Promise.resolve();
  }

  private show(run: Run, { variable, lead }: Choice): void {
    const address = tileAddress(run, variable, lead);
    if (address === (this.coming ?? this.shown)?.address) return;
    if (this.coming) this.drop(this.coming);
    this.coming = null;
    if (address === this.shown?.address) return this.tellWaiting();
    this.coming = { id: `frame-${++this.made}`, address, release: this.readiness.hold() };
    this.add(this.coming, run, variable === "index" || variable === "exceedance");
  }

  private add({ id, address }: Frame, run: Run, classes: boolean): void {
    this.map.addSource(id, {
      type: "raster", tiles: [`${PROTOCOL}://${address}`], tileSize: 256, bounds: run.bounds,
      maxzoom: FINEST_TILES,
    });
    this.map.addLayer({
      id, type: "raster", source: id,
      paint: {
        // Between two classes there is no colour, so classes are never smoothed.
        "raster-resampling": classes ? "nearest" : ["step", ["zoom"], "linear", NATIVE_ZOOM, "nearest"],
        "raster-opacity": 0,
        "raster-opacity-transition": { duration: reducedMotion.matches ? 0 : CROSS_FADE_MS, delay: 0 },
        "raster-fade-duration": 0,
      },
    }, ABOVE_FRAMES);
  }

  private swapWhenLoaded(): void {
    const { coming, shown: old } = this;
    if (!coming || !this.map.isSourceLoaded(coming.id)) return;
    this.map.setPaintProperty(coming.id, "raster-opacity", 1);
    this.shown = coming;
    this.coming = null;
    setTimeout(() => {
      if (old) this.drop(old);
      coming.release();
    }, CROSS_FADE_MS + 80);
    this.tellWaiting();
  }

  private drop({ id, release }: Frame): void {
    if (this.map.getLayer(id)) this.map.removeLayer(id);
    if (this.map.getSource(id)) this.map.removeSource(id);
    release();
  }

  private tellWaiting(): void {
    for (const done of this.waiting.splice(0)) done();
  }
}

/** Read tiles ourselves: MapLibre passes over a 404, but it can mean that the run has been published anew. */
function readTiles(session: Session, repaint: () => void): void {
  addProtocol(PROTOCOL, async ({ url }, { signal }) => {
    const asked = fetch(url.slice(`${PROTOCOL}://`.length), { signal });
    const response = await asked.catch(() => null).finally(repaint);
    if (response?.ok) return { data: await response.arrayBuffer() };
    const moved = response?.status === 404 && (await session.refresh().catch(() => false));
    if (!moved && !signal.aborted) session.say("Part of the map could not be read.");
    throw new Error(`The tile ${url} answered ${response?.status ?? "nothing"}.`);
  });
}
