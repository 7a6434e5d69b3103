/** What the server offers and the current choice of it. All parts of the page listen to this one. */

import { getLegends, getOffer, isSame, NotOffered, type Legends, type Offer, type Place, type Run } from "./api";
import { settle, type Choice, type Wanted } from "./choice";
import { fullDay, variableTitle } from "./wording";

type Listener = (session: Session) => void;

const ANEW = "This forecast has been published anew. The map now shows the new version.";

export class Session {
  choice: Choice;
  private listeners: Listener[] = [];
  private asking: Promise<void> | null = null;

  constructor(
    public offer: Offer,
    public legends: Legends,
    readonly places: Place[],
    wanted: Wanted,
    readonly say: (message: string) => void,
  ) {
    this.choice = this.settle(wanted);
  }

  get runs(): Run[] {
    return this.offer.runs;
  }

  get run(): Run {
    return this.runs.find(({ id }) => id === this.choice.run) ?? this.runs[0]!;
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    listener(this);
  }

  choose(change: Wanted, why = ""): void {
    this.choice = this.settle({ ...this.choice, ...change }, why);
    for (const listener of this.listeners) listener(this);
  }

  /** Ask again what is offered. Two calls at the same time share one question. */
  refresh(): Promise<void> {
    this.asking ??= this.askAgain().finally(() => (this.asking = null));
    return this.asking;
  }

  /** After a 404: whether the run is no longer offered. The page has then moved on and said so. */
  async hasGone(run: Run): Promise<boolean> {
    const gone = () => !this.runs.some((offered) => isSame(offered, run));
    if (!gone()) await this.refresh().catch(() => null);
    return gone();
  }

  /** Turn a failed request about a run into what the reader should be told; null if the page has moved on. */
  async explain(error: unknown, run: Run): Promise<string | null> {
    const text = error instanceof Error ? error.message : String(error);
    return error instanceof NotOffered && (await this.hasGone(run)) ? null : text;
  }

  /** The nearest choice that is offered; the reader is told what was replaced. */
  private settle(wanted: Wanted, why = ""): Choice {
    const { choice, replaced } = settle(wanted, this.runs);
    const shown = `${variableTitle(choice.variable)}, T+${choice.lead} from ${fullDay(choice.run)}`;
    const instead = replaced.length ? `Not offered: ${replaced.join(", ")}. The map shows ${shown}.` : "";
    if (why || instead) this.say([why, instead].filter(Boolean).join(" "));
    return choice;
  }

  private async askAgain(): Promise<void> {
    const offer = await getOffer();
    if (offer.runs.length === 0) return; // what is on the screen is better than nothing
    if (offer.style !== this.offer.style) this.legends = await getLegends();
    const { id, version } = this.run;
    this.offer = offer;
    const anew = offer.runs.some((run) => run.id === id && run.version !== version);
    this.choose({}, anew ? ANEW : "");
  }
}
