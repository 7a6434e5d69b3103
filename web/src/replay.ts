/** The time slider and its replay: over the runs if there are several, else over the leads of the one. */

import type { Choice } from "./choice";
import { leadOf, type Run } from "./api";
import { byId, element, svg } from "./element";
import type { Frames } from "./frames";
import type { Session } from "./session";
import { fullDay, weekday } from "./wording";

const STEP_MS = 900;
const PLAY = "M6.5 4.2v11.6L16 10z";
const PAUSE = "M6 4.5h3v11H6zM11 4.5h3v11h-3z";

type Step = Pick<Choice, "run" | "lead">;

/** The frames from the earliest to the latest. */
function steps({ runs, choice, run }: Session): Step[] {
  if (runs.length > 1) return runs.map(({ id }) => ({ run: id, lead: choice.lead })).reverse();
  return run.leads.map(({ lead }) => ({ run: run.id, lead }));
}

function offers(runs: Run[], { variable }: Choice, step: Step): boolean {
  const offered = leadOf(runs.find(({ id }) => id === step.run)!, step.lead);
  return offered.lead === step.lead && offered.variables.includes(variable);
}

const at = ({ choice }: Session, all: Step[]) =>
  Math.max(0, all.findIndex(({ run, lead }) => run === choice.run && lead === choice.lead));

export function showReplay(session: Session, frames: Frames): void {
  const slider = byId<HTMLInputElement>("time");
  const button = byId<HTMLButtonElement>("play");
  let playing = false;

  slider.addEventListener("input", () => {
    play(false);
    session.choose(steps(session)[Number(slider.value)]!);
  });
  button.addEventListener("click", () => play(!playing));
  session.listen(() => {
    const all = steps(session);
    const { valid, lead } = leadOf(session.run, session.choice.lead);
    slider.max = String(all.length - 1);
    slider.value = String(at(session, all));
    slider.disabled = button.disabled = all.length < 2;
    slider.style.setProperty("--done", `${(100 * at(session, all)) / Math.max(1, all.length - 1)}%`);
    byId("time-label").replaceChildren(fullDay(valid),
      element("span", {}, `T+${lead} from ${weekday(session.run.id)}`));
    slider.setAttribute("aria-valuetext", `${fullDay(valid)}, T+${lead}, made from ${fullDay(session.run.id)}`);
  });

  function play(yes: boolean): void {
    if (yes === playing && button.hasChildNodes()) return;
    playing = yes;
    button.setAttribute("aria-label", yes ? "Pause the replay" : "Play the replay");
    button.title = yes ? "Pause" : "Replay";
    button.replaceChildren(svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" },
      svg("path", { d: yes ? PAUSE : PLAY })));
    if (yes) void run();
  }

  async function run(): Promise<void> {
    while (playing) {
      await Promise.all([frames.loaded(), new Promise((done) => setTimeout(done, STEP_MS))]);
      if (!playing) return;
      // Days without the chosen variable are left out, else the replay would change what it shows.
      const all = steps(session);
      const now = at(session, all);
      const later = all.map((_, i) => all[(now + 1 + i) % all.length]!);
      const next = later.find((step) => offers(session.runs, session.choice, step));
      if (next) session.choose(next);
    }
  }

  play(false);
}
