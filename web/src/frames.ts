/** The coloured field. What is seen at full strength always belongs to the legend and date beside it. */

import type { Map } from "maplibre-gl";
import { tileAddress, type Run, type Variable } from "./api";
import { ABOVE_FRAMES } from "./basemap";
import type { Choice } from "./choice";
import type { Readiness } from "./readiness";
import type { Session } from "./session";
import { reducedMotion } from "./theme";
import { openTiles } from "./tiles";

/** Finest tiles that are asked for; a 1-km pixel is then about nine tile pixels wide, hence evenly square. */
const FINEST_TILES = 10;
/** From this zoom on, one pixel of the field is larger than one of the screen. */
const NATIVE_ZOOM = 6.5;
const CROSS_FADE_MS = 220;
/** Of the frame of another day, until the chosen one is there. */
const DIMMED = 0.3;

export type Field = Pick<Choice, "variable" | "lead">;

interface Frame {
  id: string;
  address: string;
  run: Run;
  variable: Variable;
  /** Whether it is the chosen one, rather than loaded ahead. */
  wanted: boolean;
  /** Whether a tile could not be read. */
  incomplete: boolean;
  release: () => void;
}

export class Frames {
  private shown: Frame | null = null;
  private coming: Frame | null = null;
  private leaving: Frame | null = null;
  private chosen = "";
  private waiting: (() => void)[] = [];
  private made = 0;
  private tiles;

  constructor(
    private map: Map, private session: Session, private readiness: Readiness,
    private tellIncomplete: (yes: boolean) => void,
  ) {
    this.tiles = openTiles({
      failed: (id, status) => void this.tileFailed(id, status),
      answered: () => map.triggerRepaint(),
    });
    map.on("render", () => this.whenLoaded());
    // The reader has been told of a tile that failed; everything else belongs in the console.
    map.on("error", (event) => "sourceId" in event || console.error(event.error));
    session.listen(({ run, choice }) => this.show(run, choice));
  }

  /** Resolves when nothing is loading: the chosen frame is shown, or the one loaded ahead could be. */
  loaded(): Promise<void> {
    return this.isLoading() ? new Promise((done) => this.waiting.push(done)) : Promise.resolve();
  }

  /** Load a frame unseen; choosing it afterwards shows it at once. */
  prepare(run: Run, field: Field): Promise<void> {
    if (!this.coming?.wanted) this.load(run, field);
    return this.loaded();
  }

  private show(run: Run, field: Field): void {
    const address = this.address(run, field);
    if (address === this.chosen) return;
    this.chosen = address;
    this.load(run, field);
    if (this.shown && this.shown.variable !== field.variable) this.hide();
    if (!this.coming) return this.setOpacity(this.shown!, 1);
    this.coming.wanted = true;
    this.coming.release = this.readiness.hold();
    if (!this.isLoading()) this.swap(this.coming);
    else if (this.shown) this.setOpacity(this.shown, DIMMED);
  }

  /** Afterwards `coming` is that frame, or null if it is the shown one. */
  private load(run: Run, field: Field): void {
    const address = this.address(run, field);
    if (address === this.coming?.address) return;
    if (this.coming) this.drop(this.coming);
    this.coming = address === this.shown?.address ? null : this.add(run, field.variable, address);
    if (!this.coming) this.tellWaiting();
  }

  private address(run: Run, { variable, lead }: Field): string {
    return tileAddress(run, variable, lead, this.session.offer.style);
  }

  private add(run: Run, variable: Variable, address: string): Frame {
    const id = `frame-${++this.made}`;
    const classes = variable === "index" || variable === "exceedance";
    this.map.addSource(id, {
      type: "raster", tiles: [this.tiles(id, address)], tileSize: 256, bounds: run.bounds, maxzoom: FINEST_TILES,
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
    return { id, address, run, variable, wanted: false, incomplete: false, release: () => {} };
  }

  private isLoading(): boolean {
    return this.coming !== null && !this.map.isSourceLoaded(this.coming.id);
  }

  private whenLoaded(): void {
    if (this.isLoading()) return;
    if (this.coming?.wanted) this.swap(this.coming);
    this.tellWaiting();
  }

  private swap(frame: Frame): void {
    const old = this.shown;
    if (this.leaving) this.drop(this.leaving);
    [this.leaving, this.shown, this.coming] = [old, frame, null];
    this.setOpacity(frame, 1);
    this.tellIncomplete(frame.incomplete);
    setTimeout(() => {
      if (old) this.drop(old);
      frame.release();
    }, CROSS_FADE_MS + 80);
  }

  /** Under the legend of another variable even a dimmed frame would be misread. */
  private hide(): void {
    for (const frame of [this.shown, this.leaving]) if (frame) this.drop(frame);
    this.shown = this.leaving = null;
    this.tellIncomplete(false);
  }

  private async tileFailed(id: string, status: number | null): Promise<void> {
    const frame = [this.shown, this.coming].find((one) => one?.id === id);
    if (!frame || (status === 404 && (await this.session.hasGone(frame.run)))) return;
    frame.incomplete = true;
    if (frame === this.shown) this.tellIncomplete(true);
  }

  private setOpacity({ id }: Frame, opacity: number): void {
    this.map.setPaintProperty(id, "raster-opacity", opacity);
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
