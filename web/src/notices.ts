/** What the reader must know about the data: badges, the details of the run, and messages. */

import { leadOf, type Run } from "./api";
import { byId, element } from "./element";
import type { Session } from "./session";
import { age, fullDay } from "./wording";

const TOAST_MS = 6000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

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

export function showBadges(session: Session): void {
  const loadedAt = new Map<Run, number>();
  const draw = () => {
    const { run } = session;
    if (!loadedAt.has(run)) loadedAt.set(run, Date.now());
    const hours = run.age_hours + (Date.now() - loadedAt.get(run)!) / HOUR_MS;
    byId("badges").replaceChildren(...badges(run, hours));
    byId("about").replaceChildren(...about(session, hours));
    byId("data-label").textContent = [
      run.simulated ? "Simulated data" : `PM2.5: ${run.method}`, "borders: Natural Earth",
    ].join(" · ");
  };
  session.listen(draw);
  setInterval(draw, MINUTE_MS);
}

function badges(run: Run, hours: number): HTMLElement[] {
  const badge = (name: string, kind: string, text: string) =>
    element("li", { class: `badge ${kind}`, "data-testid": `badge-${name}` }, text);
  return [
    ...(run.simulated ? [badge("simulated", "caution", "Simulated data – not a real observation")] : []),
    run.stale
      ? badge("age", "danger", `Out of date: ${age(hours)}`)
      : badge("age", "plain", age(hours)),
    ...(run.degraded.length
      ? [badge("degraded", "caution", `Degraded input: ${run.degraded.join("; ")}`)] : []),
  ];
}

function about(session: Session, hours: number): HTMLElement[] {
  const { run, choice } = session;
  const row = (name: string, ...values: string[]) =>
    element("div", {}, element("dt", {}, name), ...values.map((value) => element("dd", {}, value)));
  return [
    row("Method", run.method),
    row("Start day", fullDay(run.id)),
    row("Valid", fullDay(leadOf(run, choice.lead).valid)),
    row("Made", age(hours).replace("made ", "") + (run.stale ? ", out of date" : "")),
    row("Input", ...(run.degraded.length ? run.degraded : ["complete"])),
    row("Version", run.version),
  ];
}
