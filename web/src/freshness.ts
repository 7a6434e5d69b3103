/** An open page asks again what is offered, so that it learns of newer forecasts and of its own age. */

import { byId, element } from "./element";
import type { Session } from "./session";

const EVERY_MS = 5 * 60_000;

export function keepFresh(session: Session): void {
  const ask = () => void session.refresh().catch(() => null); // a badge tells how long there was no answer
  setInterval(ask, EVERY_MS);
  document.addEventListener("visibilitychange", () => document.hidden || ask());
  offerNewer(session);
}

/** Tell of a newer run than any that the reader could know of; it is shown only if asked for. */
function offerNewer(session: Session): void {
  let known = session.runs[0]!.id;
  let offered = "";
  session.listen(({ runs, choice }) => {
    const newest = runs[0]!.id;
    if (choice.run === newest && known < newest) known = newest;
    const wanted = newest > known ? newest : "";
    if (wanted === offered) return;
    offered = wanted;
    byId("newer").replaceChildren(...(offered ? notice() : []));
  });

  function notice(): HTMLElement[] {
    const show = element("button", { type: "button", class: "strong", "data-testid": "show-newer" }, "Show it");
    const leave = element("button", { type: "button", class: "quiet", "aria-label": "Leave it" }, "×");
    show.addEventListener("click", () => session.choose({ run: session.runs[0]!.id }));
    leave.addEventListener("click", () => {
      known = session.runs[0]!.id;
      session.choose({});
    });
    return [element("p", {}, "A newer forecast is there"), show, leave];
  }
}
