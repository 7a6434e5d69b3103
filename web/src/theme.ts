/** Light or dark: the reader's choice, else the system's. */

import type { Choice, Theme } from "./choice";

export const systemPrefersDark = matchMedia("(prefers-color-scheme: dark)");
export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export const themeOf = ({ theme }: Pick<Choice, "theme">): Theme =>
  theme ?? (systemPrefersDark.matches ? "dark" : "light");

export function applyTheme(choice: Pick<Choice, "theme">): void {
  document.documentElement.dataset["theme"] = themeOf(choice);
}

export interface MapColours {
  sea: string;
  land: string;
  line: string;
  text: string;
  halo: string;
}

/** Lines are a middle grey in the dark theme, since they cross both bare land and pale colours. */
export const MAP_COLOURS: Record<Theme, MapColours> = {
  light: { sea: "#dde6ec", land: "#f1f0ec", line: "#39424b", text: "#1a2027", halo: "#ffffffd9" },
  dark: { sea: "#0e171f", land: "#1f2831", line: "#5f6b76", text: "#f2f5f8", halo: "#10161cd9" },
};
