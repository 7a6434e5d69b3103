/** The runs on offer and the current choice among them. All parts of the page listen to this one. */

import { getRuns, NotOffered, type Legends, type Place, type Run } from "./api";
import { settle, type Choice } from "./choice";

type Listener = (session: Session) => void;

export class Session {
  choice: Choice;
  private listeners: Listener[] = [];
  private refreshing: Promise<boolean> | null = null;

  constructor(
    public runs: Run[],
    readonly legends: Legends,
    readonly places: Place[],
    wanted: Partial<Choice>,
    readonly say: (message: string) => void,
  ) {
    this.choice = settle(wanted, runs);
  }

  get run(): Run {
    return this.runs.find(({ id }) => id === this.choice.run) ?? this.runs[0]!;
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
    listener(this);
  }

  choose(change: Partial<Choice>): void {
    this.choice = settle({ ...this.choice, ...change }, this.runs);
    for (const listener of this.listeners) listener(this);
  }

  /** Ask for the runs again after a 404; true if the shown run's version had gone. Two calls share one question. */
  refresh(): Promise<boolean> {
    this.refreshing ??= this.askAgain().finally(() => (this.refreshing = null));
    return this.refreshing;
  }

  /** Turn a failed request into what the reader should be told; null if the page has already moved on. */
  async explain(error: unknown): Promise<string | null> {
    if (!(error instanceof NotOffered)) return error instanceof Error ? error.message : String(error);
    return (await this.refresh().catch(() => false)) ? null : error.message;
  }

  private async askAgain(): Promise<boolean> {
    const before = this.run;
    const runs = await getRuns();
    const same = runs.some(({ id, version }) => id === before.id && version === before.version);
    if (same || runs.length === 0) return false;
    this.runs = runs;
    const kept = runs.some(({ id }) => id === before.id);
    this.say(
      kept
        ? "This forecast has been published anew. The map now shows the new version."
        : "That forecast is no longer offered. The map now shows the newest one.",
    );
    this.choose({});
    return true;
  }
}
