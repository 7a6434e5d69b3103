/** Names of towns on a canvas over the map: the largest first, and never one across another. */

import type { Map } from "maplibre-gl";
import type { Place } from "./api";
import { element } from "./element";
import type { Session } from "./session";
import { MAP_COLOURS, themeOf } from "./theme";

const FONT = '500 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const LINE_PX = 14;
/** Free room around a name; it sets how dense the names are. */
const ROOM_PX = { x: 18, y: 15 };
const BESIDE_PX = 7;

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function showTowns(map: Map, session: Session): void {
  const canvas = element("canvas", { class: "towns", "aria-hidden": "true" });
  map.getCanvasContainer().append(canvas);
  const pen = canvas.getContext("2d")!;
  pen.font = FONT;
  const towns = session.places.map((place) => ({ place, width: pen.measureText(place.name).width }));

  const draw = () => {
    const { clientWidth: width, clientHeight: height } = map.getContainer();
    fit(canvas, width, height);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = FONT;
    pen.lineJoin = "round";
    const colours = MAP_COLOURS[themeOf(session.choice)];
    const taken: Box[] = [];
    for (const town of towns) {
      const { x, y } = map.project([town.place.lon, town.place.lat]);
      if (x < 8 || y < 8 || x > width - 8 || y > height - 8) continue;
      const reach = BESIDE_PX + town.width;
      const side = [0, -reach].find((shift) => {
        const box = { left: x + shift, right: x + shift + reach, top: y - LINE_PX / 2, bottom: y + LINE_PX / 2 };
        const free = box.left > 0 && box.right < width && !taken.some((other) => tooClose(other, box));
        if (free) taken.push(box);
        return free;
      });
      if (side === undefined) continue;
      write(pen, town.place, [x, y], side === 0 ? x + BESIDE_PX : x - reach, colours);
    }
  };
  map.on("render", draw);
}

/** Setting a canvas's size clears it and is slow, so only when it has changed. */
function fit(canvas: HTMLCanvasElement, width: number, height: number): void {
  const [columns, rows] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width === columns && canvas.height === rows) return;
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

function tooClose(a: Box, b: Box): boolean {
  return (
    a.left < b.right + ROOM_PX.x && b.left < a.right + ROOM_PX.x &&
    a.top < b.bottom + ROOM_PX.y && b.top < a.bottom + ROOM_PX.y
  );
}

function write(
  pen: CanvasRenderingContext2D, { name }: Place, [x, y]: [number, number], left: number,
  { text, halo }: { text: string; halo: string },
): void {
  pen.strokeStyle = halo;
  pen.fillStyle = text;
  pen.textBaseline = "middle";
  pen.lineWidth = 3;
  pen.beginPath();
  pen.arc(x, y, 2.2, 0, 2 * Math.PI);
  pen.stroke();
  pen.fill();
  pen.strokeText(name, left, y + 0.5);
  pen.fillText(name, left, y + 0.5);
}
