/** What the reader must know about the data: badges, the details of the run, and messages. */

import { ageHours, hasArchive, leadOf } from "./api";
import { byId, element } from "./element";
import type { Session } from "./session";
import { age, fullDay } from "./wording";

const TOAST_MS = 9000;
const MINUTE_MS = 60_000;
/** Three questions in a row without an answer. */
const SILENT_MINUTES = 15;

/** Say something in passing; a screen reader reads it out. */
export function say(message: string): void {
  const toast = byId("toast");
  toast.textContent = message;
  clearTimeout(Number(toast.dataset["timer"]));
  toast.dataset["timer"] = String(setTimeout(() => (toast.textContent = ""), TOAST_MS));
}

/** Cover the page with a message; `retry` adds a button. */
export function showMessage(title: string, text: string, retry?: () => void): void {
  const box = byId("message");
  const button = element("button", { type: "button", class: "strong", "data-testid": "retry" }, "Try again");
  button.addEventListener("click", () => {
    hideMessage();
    retry?.();
  });
  box.replaceChildren(element("div", {}, element("h2", {}, title), element("p", {}, text), retry ? button : null));
  box.hidden = false;
  document.body.classList.add("only-message");
}

export function hideMessage(): void {
  byId("message").hidden = true;
  document.body.classList.remove("only-message");
}

/** Returns how to say that tiles of the map could not be read. */
export function showBadges(session: Session): { tellIncomplete: (yes: boolean) => void } {
  let incomplete = false;
  const draw = () => {
    const { run } = session;
    byId("badges").replaceChildren(...badges(session, incomplete));
    byId("about").replaceChildren(...about(session));
    byId("data-label").textContent = [
      simulatedParts(session)?.label ?? `PM2.5: ${run.method}`, "borders: Natural Earth",
    ].join(" · ");
  };
  session.listen(draw);
  setInterval(draw, MINUTE_MS);
  return {
    tellIncomplete(yes) {
      if (yes === incomplete) return;
      incomplete = yes;
      draw();
    },
  };
}

/** What of the things shown is simulated, in words for the label on the map and for the badge. */
function simulatedParts({ run, choice, offer }: Session): { label: string; badge: string } | null {
  if (run.simulated) return { label: "Simulated data", badge: "Simulated data – not a real observation" };
  const observed =
    ["truth", "error", "change"].includes(choice.variable) || choice.stations !== "off" ||
    (choice.point !== null && hasArchive(run));
  if (!observed || !offer.archive?.simulated) return null;
  return { label: `PM2.5: ${run.method}, simulated observations`, badge: "Simulated observations" };
}

function badges(session: Session, incomplete: boolean): HTMLElement[] {
  const { run, offer } = session;
  const badge = (name: string, kind: string, text: string) =>
    element("li", { class: `badge ${kind}`, "data-testid": `badge-${name}` }, text);
  const hours = ageHours(run, offer);
  const silentMinutes = (Date.now() - offer.readAt) / MINUTE_MS;
  const simulated = simulatedParts(session);
  return [
    incomplete && badge("incomplete", "danger", "Part of the map is missing"),
    simulated && badge("simulated", "caution", simulated.badge),
    run.stale
      ? badge("age", "danger", `Out of date: ${run.stale_reason || age(hours)}`)
      : badge("age", "plain", age(hours)),
    silentMinutes > SILENT_MINUTES &&
      badge("silent", "caution", `The server has not answered for ${Math.round(silentMinutes)} min`),
    run.degraded.length > 0 && badge("degraded", "caution", `Degraded input: ${run.degraded.join("; ")}`),
  ].filter((found) => found instanceof HTMLElement);
}

function about({ run, choice, offer }: Session): HTMLElement[] {
  const row = (name: string, ...values: string[]) =>
    element("div", {}, element("dt", {}, name), ...values.map((value) => element("dd", {}, value)));
  const made = age(ageHours(run, offer)).replace("made ", "");
  return [
    row("Method", run.method),
    row("Start day", fullDay(run.id)),
    row("Valid", fullDay(leadOf(run, choice.lead).valid)),
    row("Made", made + (run.stale ? ", out of date" : "")),
    row("Input", ...(run.degraded.length ? run.degraded : ["complete"])),
    ...(offer.archive ? [row("Archive", offer.archive.source)] : []),
    row("Version", run.version),
  ];
}
