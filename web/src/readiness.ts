/** <html data-ready="yes|no">: whether all that was asked for is on the screen. For tests and the progress line. */

import type { Map } from "maplibre-gl";

export class Readiness {
  private held = 0;

  constructor(private map: Map) {
    this.mark("no");
    map.on("movestart", () => this.mark("no"));
    map.on("dataloading", () => this.mark("no"));
    map.on("idle", () => this.held === 0 && this.mark("yes"));
  }

  /** Not ready until the returned function is called. */
  hold(): () => void {
    this.held += 1;
    this.mark("no");
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.held -= 1;
      this.map.triggerRepaint(); // an idle map would not say again that it is idle
    };
  }

  private mark(ready: "yes" | "no"): void {
    document.documentElement.dataset["ready"] = ready;
  }
}
