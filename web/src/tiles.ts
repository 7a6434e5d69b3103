/** Tiles are read by us: MapLibre passes over a failed one, which would then look like missing data. */

import { addProtocol } from "maplibre-gl";

const PROTOCOL = "frame";
const RETRY_MS = 2000;

interface Told {
  /** A tile of this frame failed twice, or answered 404; null is no answer at all. */
  failed: (frame: string, status: number | null) => void;
  answered: () => void;
}

/** Returns the function that turns a frame's id and the address of its tiles into one that is read here. */
export function openTiles({ failed, answered }: Told): (frame: string, address: string) => string {
  addProtocol(PROTOCOL, async ({ url }, { signal }) => {
    const [, frame, address] = /^frame:\/\/([^/]+)\/(.*)$/.exec(url)!;
    const response = await readTwice(address!, signal).finally(answered);
    if (response?.ok) return { data: await response.arrayBuffer() };
    if (!signal.aborted) failed(frame!, response?.status ?? null);
    throw new Error(`The tile ${address} answered ${response?.status ?? "nothing"}.`);
  });
  return (frame, address) => `${PROTOCOL}://${frame}/${address}`;
}

/** The answer, or null if there was none; a server that is busy or away for a moment is asked once more. */
async function readTwice(address: string, signal: AbortSignal): Promise<Response | null> {
  const read = () => fetch(address, { signal }).catch(() => null);
  const first = await read();
  if (first?.ok || first?.status === 404 || signal.aborted) return first;
  await new Promise((done) => setTimeout(done, RETRY_MS));
  return signal.aborted ? null : read();
}
