/** The choices beside the map: run, variable, stations, and the lead under it. */

import { hasArchive, leadOf, VARIABLES, type Run, type Variable } from "./api";
import type { StationColour } from "./choice";
import { byId, element } from "./element";
import { drawRadios } from "./radios";
import type { Session } from "./session";
import { fullDay, variableTitle, weekday } from "./wording";

const DETAILS: Record<Variable, string> = {
  pm25: "Daily mean",
  index: "Good to extremely poor",
  exceedance: "Thresholds passed",
  change: "Forecast − start day",
  truth: "The day as it was",
  error: "Forecast − truth",
};
const MISSING: Partial<Record<Variable, string>> = {
  change: "The archive lacks the start day",
  truth: "The archive lacks this day",
  error: "The archive lacks this day",
};
const NO_ARCHIVE = "Needs an archive of past days";
const STATION_NAMES: [StationColour, string, string][] = [
  ["off", "Off", "No stations"],
  ["observed", "Observed", "What the stations measured"],
  ["difference", "Model − obs.", "Forecast minus measurement"],
];

/** Why a run and lead have no stations: the server does not offer them, or they could not be read this time. */
export interface StationTrouble {
  reason: string;
  lasting: boolean;
}
export type TellStations = (run: Run, lead: number, trouble: StationTrouble | null) => void;

export function showControls(session: Session): { tellStations: TellStations } {
  const run = byId<HTMLSelectElement>("run");
  run.addEventListener("change", () => session.choose({ run: run.value }));
  const troubles = new Map<string, StationTrouble>();
  const key = ({ id, version }: Run, lead: number) => `${id}/${version}/${lead}`;
  const troubleNow = () => troubles.get(key(session.run, session.choice.lead)) ?? null;
  session.listen(() => {
    drawRuns(run, session);
    drawLeads(session);
    drawVariables(session);
    drawStations(session, troubleNow());
  });
  openOnSmallScreens(session);
  return {
    tellStations(run, lead, trouble) {
      if (trouble) troubles.set(key(run, lead), trouble);
      else troubles.delete(key(run, lead));
      if (troubleNow()?.lasting) session.choose({ stations: "off" });
      else drawStations(session, troubleNow());
    },
  };
}

function drawRuns(select: HTMLSelectElement, { runs, run }: Session): void {
  const wanted = runs.map(({ id, version }) => `${id}/${version}`).join();
  if (select.dataset["runs"] !== wanted) {
    select.dataset["runs"] = wanted;
    select.replaceChildren(...runs.map(({ id }, i) =>
      element("option", { value: id }, fullDay(id) + (i === 0 && runs.length > 1 ? " (newest)" : ""))));
  }
  select.value = run.id;
}

function drawLeads(session: Session): void {
  const options = session.run.leads.map(({ lead, valid }) => ({
    value: lead, title: weekday(valid), detail: `T+${lead}`, missing: null,
  }));
  drawRadios(byId("leads"), "lead", options, session.choice.lead, (lead) => session.choose({ lead }));
}

function drawVariables(session: Session): void {
  const { variables } = leadOf(session.run, session.choice.lead);
  const archive = hasArchive(session.run);
  const options = VARIABLES.map((value) => {
    const reason = archive ? (MISSING[value] ?? "Not part of this forecast") : NO_ARCHIVE;
    const missing = variables.includes(value) ? null : reason;
    return { value, title: variableTitle(value), detail: DETAILS[value], missing };
  });
  drawRadios(byId("variables"), "variable", options, session.choice.variable,
    (variable) => session.choose({ variable }));
}

function drawStations(session: Session, trouble: StationTrouble | null): void {
  const missing = hasArchive(session.run) ? (trouble?.lasting ? trouble.reason : null) : NO_ARCHIVE;
  const options = STATION_NAMES.map(([value, title, detail]) => ({
    value, title, detail, missing: value === "off" ? null : missing,
  }));
  const group = byId("stations");
  const wanted = session.choice.stations !== "off";
  byId("stations-reason").textContent = missing ?? (wanted && trouble ? trouble.reason : "");
  drawRadios(group, "stations", options, missing ? "off" : session.choice.stations,
    (stations) => session.choose({ stations }));
}

/** On a phone the choices are a sheet that a button on the map opens. */
function openOnSmallScreens(session: Session): void {
  const [sheet, opener] = [byId("choices"), byId("choices-open")];
  const open = (yes: boolean) => {
    sheet.classList.toggle("open", yes);
    opener.setAttribute("aria-expanded", String(yes));
    if (yes) byId("choices-close").focus();
    else opener.focus();
  };
  opener.addEventListener("click", () => open(!sheet.classList.contains("open")));
  byId("choices-close").addEventListener("click", () => open(false));
  sheet.addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && sheet.classList.contains("open")) open(false);
  });
  session.listen(({ choice }) => {
    byId("choices-open-text").textContent = variableTitle(choice.variable);
    opener.setAttribute("aria-label", `Map options, now ${variableTitle(choice.variable)}`);
  });
}
