/** Start the page: read the permalink, ask the server what it offers, and join the parts. */

import "./styles/colours.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/time.css";
import "./styles/legend.css";
import "./styles/map.css";
import "./styles/point.css";
import { getLegends, getOffer, getPlaces } from "./api";
import { readHash, writeHash, type Wanted } from "./choice";
import { showControls } from "./controls";
import { byId } from "./element";
import { Frames } from "./frames";
import { keepFresh } from "./freshness";
import { showLegend } from "./legend";
import { openMap, reveal, showView } from "./map";
import { hideMessage, say, showBadges, showMessage } from "./notices";
import { showPoint } from "./point";
import { Readiness } from "./readiness";
import { showReplay } from "./replay";
import { Session } from "./session";
import { showStations } from "./stations";
import { applyTheme, systemPrefersDark, themeOf } from "./theme";
import { showTowns } from "./towns";

declare global {
  interface Window {
    cranpmMap?: Awaited<ReturnType<typeof openMap>>;
  }
}

async function start(): Promise<void> {
  const wanted = readHash(location.hash);
  applyTheme({ theme: wanted.theme ?? null });
  const session = await ask(wanted);
  if (!session) return;
  keepTheme(session);
  keepPermalink(session);
  const { tellIncomplete } = showBadges(session);
  showLegend(session);
  const { tellStations } = showControls(session);
  const map = await openMap(session);
  window.cranpmMap = map;
  const readiness = new Readiness(map);
  const frames = new Frames(map, session, readiness, tellIncomplete);
  showTowns(map, session);
  const circles = showStations(map, session, readiness, tellStations);
  showReplay(session, frames, circles);
  // A view that a permalink names is shown as it is, even if the panel then hides the point.
  let keepView = wanted.view !== undefined && wanted.point !== undefined;
  showPoint(session, {
    focus: () => map.getCanvas().focus(),
    hasKeyboardFocus: () => map.getCanvas().matches(":focus-visible"),
    reveal: (spot) => (keepView ? (keepView = false) : reveal(map, spot)),
  });
  addEventListener("hashchange", async () => {
    const linked = readHash(location.hash);
    await session.refresh().catch(() => null); // the link may be to a run that was made meanwhile
    session.choose({ point: null, theme: null, ...linked });
    showView(map, linked);
  });
  keepFresh(session);
}

/** What the server offers; null if a message has taken the page's place. */
async function ask(wanted: Wanted): Promise<Session | null> {
  try {
    const places = getPlaces().catch(() => []); // a map without names is still a map
    const [offer, legends] = await Promise.all([getOffer(), getLegends()]);
    if (offer.runs.length > 0) {
      hideMessage();
      return new Session(offer, legends, await places, wanted, say);
    }
    showMessage("No forecast yet",
      "The server is running, but nothing has been published. " +
        "Make a forecast with “cranpm forecast”, then look again.",
      begin);
  } catch (error) {
    showMessage("The forecast cannot be reached",
      `${error instanceof Error ? error.message : error}. Is “cranpm serve” still running?`, begin);
  }
  return null;
}

function keepTheme(session: Session): void {
  byId("theme").addEventListener("click", () =>
    session.choose({ theme: themeOf(session.choice) === "dark" ? "light" : "dark" }));
  const draw = () => {
    applyTheme(session.choice);
    const other = themeOf(session.choice) === "dark" ? "Light" : "Dark";
    byId("theme-text").textContent = other;
    byId("theme").setAttribute("aria-label", `${other} theme`);
  };
  session.listen(draw);
  systemPrefersDark.addEventListener("change", draw);
}

function keepPermalink(session: Session): void {
  // Replacing keeps the back button for leaving the page, not for undoing each pan of the map.
  session.listen(({ choice }) => history.replaceState(null, "", writeHash(choice)));
  const words = byId("copy-link-text");
  byId("copy-link").addEventListener("click", async () => {
    const copied = await copy(location.href);
    words.textContent = copied ? "Copied" : "Copy failed";
    if (!copied) say("The browser refused to copy; the link is in the address bar.");
    setTimeout(() => (words.textContent = "Copy link"), 2000);
  });
}

/** The clipboard is only open to pages from localhost or https. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function begin(): void {
  start().catch((error: unknown) => {
    console.error(error);
    const canDraw = document.createElement("canvas").getContext("webgl2") !== null;
    if (canDraw) showMessage("The map could not be started", String(error), () => location.reload());
    else showMessage("The map needs WebGL",
      "This browser does not offer WebGL 2, which draws the map. Turn on hardware acceleration in its settings, " +
        "or use another browser.", () => location.reload());
  });
}

begin();
