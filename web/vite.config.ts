import { defineConfig } from "vite";
import { atlas } from "./atlas.ts";
import { REGIONS } from "./src/regions.ts";

const api = process.env["CRANPM_API"] ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  plugins: [atlas()],
  server: { proxy: { "/api": api } },
  build: {
    outDir: "../src/cranpm/views/serve/page",
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: {
      output: {
        // Fine borders stand apart: they are not part of the first view.
        chunkFileNames: ({ name }) => `assets/${name in REGIONS ? "close/" : ""}[name]-[hash].js`,
      },
    },
    chunkSizeWarningLimit: 1500, // the map library alone is 1.1 MB before compression
  },
});
