/** The time slider and its replay: over the runs if there are several, else over the leads of the one. */

import type { Choice } from "./choice";
import { isSame, leadOf, type Run } from "./api";
import { byId, element, svg } from "./element";
import type { Frames } from "./frames";
import type { Session } from "./session";
import { fullDay, weekday } from "./wording";

const STEP_MS = 900;
const PLAY = "M6.5 4.2v11.6L16 10z";
const PAUSE = "M6 4.5h3v11H6zM11 4.5h3v11h-3z";

type Step = Pick<Choice, "run" | "lead">;

/** The frames of one map from the earliest to the latest. */
function steps({ runs, choice, run }: Session): Step[] {
  const alike = runs.filter(({ bounds }) => String(bounds) === String(run.bounds));
  if (alike.length > 1) return alike.map(({ id }) => ({ run: id, lead: choice.lead })).reverse();
  return run.leads.map(({ lead }) => ({ run: run.id, lead }));
}

const runOf = ({ runs }: Session, step: Step) => runs.find(({ id }) => id === step.run)!;

/** The next frame with the chosen variable; others are left out, else the replay would change what it shows. */
function following(session: Session): Step | null {
  const all = steps(session);
  const now = at(session, all);
  const later = all.slice(1).map((_, i) => all[(now + 1 + i) % all.length]!);
  const offers = (step: Step) => {
    const { lead, variables } = leadOf(runOf(session, step), step.lead);
    return lead === step.lead && variables.includes(session.choice.variable);
  };
  return later.find(offers) ?? null;
}

const at = ({ choice }: Session, all: Step[]) =>
  Math.max(0, all.findIndex(({ run, lead }) => run === choice.run && lead === choice.lead));

interface Ahead {
  prepare: (run: Run, lead: number) => Promise<void>;
}

export function showReplay(session: Session, frames: Frames, circles: Ahead): void {
  const slider = byId<HTMLInputElement>("time");
  const button = byId<HTMLButtonElement>("play");
  let playing = false;
  let turn = 0; // of the replay that runs, so that a paused one never wakes up beside a newer one

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
    turn += 1;
    button.setAttribute("aria-label", yes ? "Pause the replay" : "Play the replay");
    button.title = yes ? "Pause" : "Replay";
    button.replaceChildren(svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" },
      svg("path", { d: yes ? PAUSE : PLAY })));
    if (yes) void run();
  }

  /** The next frame is loaded unseen, so labels, stations and map change together. */
  async function run(): Promise<void> {
    const mine = ++turn;
    while (mine === turn) {
      await frames.loaded();
      const next = following(session);
      if (mine !== turn) return;
      if (!next) return play(false);
      const { run, choice: { lead, variable, stations } } = session;
      const there = runOf(session, next);
      await Promise.all([
        pause(STEP_MS), frames.prepare(there, { variable, lead: next.lead }), circles.prepare(there, next.lead),
      ]);
      const { choice } = session;
      const unchanged =
        isSame(run, session.run) && choice.lead === lead && choice.variable === variable && choice.stations === stations;
      if (mine === turn && unchanged) session.choose(next);
    }
  }

  play(false);
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
