declare module "virtual:atlas/*" {
  const topology: import("topojson-specification").Topology<{
    countries: import("topojson-specification").GeometryCollection;
  }>;
  export default topology;
}
