// The parts of ECharts that the pages use; `make vendor` bundles them into echarts.min.js.
import { BarChart, HeatmapChart, LineChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

use([
  BarChart, HeatmapChart, LineChart, DataZoomComponent, GridComponent, LegendComponent, TooltipComponent,
  VisualMapComponent, CanvasRenderer,
]);

export { init };
