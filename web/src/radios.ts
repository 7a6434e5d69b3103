/** A row or list of native radio buttons dressed as tiles: arrow keys and screen readers work as ever. */

import { element } from "./element";

export interface Option<T extends string | number> {
  value: T;
  title: string;
  detail: string;
  /** Why it cannot be chosen now; null if it can. */
  missing: string | null;
}

/** Fill a group with one radio for each option; the test id of each is `${name}-${value}`. */
export function drawRadios<T extends string | number>(
  group: HTMLElement, name: string, options: Option<T>[], chosen: T, choose: (value: T) => void,
): void {
  const same = options.map(({ value }) => String(value)).join();
  // Rebuild only when the options change, else the focus would be lost on every choice.
  if (group.dataset["options"] !== same) {
    group.dataset["options"] = same;
    group.querySelectorAll(".tile").forEach((tile) => tile.remove());
    const tiles = options.map(({ value }) => tile(name, value, choose));
    const after = group.querySelector(".reason");
    if (after) after.before(...tiles);
    else group.append(...tiles);
  }
  options.forEach((option, i) => dress(group.querySelectorAll<HTMLElement>(".tile")[i]!, option, chosen));
}

function tile<T extends string | number>(name: string, value: T, choose: (value: T) => void): HTMLElement {
  const id = `${name}-${value}`;
  const input = element("input", { type: "radio", name, id, value, "data-testid": id });
  input.addEventListener("change", () => input.checked && choose(value));
  return element("div", { class: "tile" }, input,
    element("label", { for: id }), element("small", { id: `${id}-detail` }));
}

function dress<T extends string | number>(box: HTMLElement, option: Option<T>, chosen: T): void {
  const input = box.querySelector("input")!;
  input.checked = option.value === chosen;
  input.disabled = option.missing !== null;
  input.setAttribute("aria-describedby", `${input.id}-detail`);
  box.classList.toggle("missing", option.missing !== null);
  box.title = option.missing ?? option.detail;
  box.querySelector("label")!.textContent = option.title;
  box.querySelector("small")!.textContent = option.missing ?? option.detail;
}
