// Charts drawn by ECharts. Each has a table with the same numbers beside it.
import { css, read } from "./shared.js";
import { init } from "./vendor/echarts.min.js";

const drawn = new WeakMap();

function frame(kind) {
  return {
    animation: false,
    textStyle: { fontFamily: "inherit", color: css("--soft") },
    grid: { left: kind === "heat" ? 190 : 52, right: 16, top: kind === "heat" ? 30 : 44, bottom: kind === "heat" ? 26 : 58 },
    // Text of others is drawn on the canvas, never set as HTML.
    tooltip: {
      renderMode: "richText", trigger: kind === "heat" ? "item" : "axis", backgroundColor: css("--panel"),
      borderColor: css("--line"), textStyle: { color: css("--ink"), fontSize: 12 },
    },
  };
}

const axisLook = () => ({
  axisLine: { lineStyle: { color: css("--line") } }, axisTick: { show: false },
  axisLabel: { color: css("--soft"), fontSize: 11, hideOverlap: true }, splitLine: { lineStyle: { color: css("--line") } },
});

const clean = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u00b7");
const short = (text, length) => (text.length > length ? `${text.slice(0, length - 9)}…${text.slice(-8)}` : text);
const time = (text) => new Date(text).getTime();

function timeAxis(timeText) {
  return { type: "time", minInterval: 60_000, ...axisLook(), axisLabel: { ...axisLook().axisLabel, formatter: (value) => timeText(new Date(value)).slice(11, 16) } };
}

// As many hues as there are series: of what is neither well nor ill.
const hues = (count) => Array.from({ length: count }, (_, number) => `hsl(${(number * 137.508 + 195) % 360} 48% 50%)`);

function lines(rows, series, timeText, unit, until = null) {
  // A minute without a row is like the last before it.
  const last = until && rows.length && time(rows[0].minute) < until ? [{ ...rows[0], minute: new Date(until).toISOString() }] : [];
  const ordered = [...[...rows].reverse(), ...last];
  return {
    ...frame("lines"),
    legend: { top: 0, left: 0, itemWidth: 14, itemHeight: 2, textStyle: { color: css("--soft") } },
    color: unit ? hues(series.length) : [css("--accent"), css("--warning"), css("--critical"), css("--soft")],
    dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl" }, {
      type: "slider", height: 18, bottom: 8, borderColor: css("--line"), fillerColor: "transparent",
      textStyle: { color: css("--soft") }, labelFormatter: (value) => timeText(new Date(value)).slice(5, 16), showDataShadow: false,
    }],
    xAxis: timeAxis(timeText),
    yAxis: { type: "value", minInterval: unit ? 0 : 1, ...axisLook(), name: unit, nameTextStyle: { color: css("--soft"), align: "right" } },
    series: series.map(({ name, at, value, type = "line", of = ordered }) => ({
      name, type, step: type === "line" && !unit ? "end" : false, showSymbol: of.length < 30, symbolSize: 5, barMaxWidth: 6,
      lineStyle: { width: 1.5 }, data: of.map((row) => [at(row), value(row)]),
    })),
  };
}

const KINDS = {
  lines: (rows, timeText, { until }) => lines(rows, [["spread", "spread"], ["idle members", "idle_members"], ["unassigned queues", "unassigned_queues"], ["members", "members"]]
    .map(([name, field]) => ({ name, at: (row) => time(row.minute), value: (row) => row[field] })), timeText, "", Number(until)),
  outages: (rows, timeText) => lines(rows, [["at least", "outage_min_ms"], ["at most", "outage_max_ms"]].map(([name, field]) => ({
    name, type: "bar", at: (row) => time(row.minute), value: (row) => (row[field] ?? 0) / 1000,
  })), timeText, "s"),
  delay: (rows, timeText, { since, until }) => {
    const clusters = [...new Set(rows.map((row) => row.cluster))];
    const option = lines(rows, clusters.map((cluster) => ({
      name: clean(short(cluster, 40)), of: rows.filter((row) => row.cluster === cluster), at: (row) => time(row.hour), value: (row) => row.p95_ms / 1000,
    })), timeText, "s");
    // All of the day, also where only one of its hours has rebalances.
    Object.assign(option.xAxis, { min: Number(since), max: Number(until) });
    return option;
  },
  heat: (rows, timeText, { since, until }) => {
    const groups = [...new Set(rows.map((row) => `${row.group_id}\n${row.cluster}`))].reverse();
    const all = [];
    for (let at = Number(since); at < Number(until); at += 3_600_000) all.push(at);
    const most = Math.max(1, ...rows.map((row) => row.rebalances));
    const pairs = groups.map((name) => name.split("\n")), count = new Map();
    for (const [group] of pairs) count.set(group, (count.get(group) ?? 0) + 1);
    // Groups of several clusters may share a name.
    const names = pairs.map(([group, cluster]) => (count.get(group) > 1 ? `${group} · ${cluster}` : group));
    return {
      ...frame("heat"),
      tooltip: { ...frame("heat").tooltip, formatter: ({ value }) => `${clean(short(names[value[1]], 60))}\n${timeText(new Date(all[value[0]])).slice(0, 16)}: ${value[2]} rebalances` },
      xAxis: { type: "category", data: all.map((at) => timeText(new Date(at)).slice(11, 16)), ...axisLook(), splitLine: { show: false } },
      yAxis: { type: "category", data: names.map((name) => clean(short(name, 26))), ...axisLook(), splitLine: { show: false } },
      visualMap: { show: false, min: 0, max: most, inRange: { color: [css("--heat-0"), css("--heat-1")] } },
      series: [{
        type: "heatmap", itemStyle: { borderColor: css("--panel"), borderWidth: 1 }, emphasis: { disabled: true },
        data: rows.map((row) => [all.indexOf(time(row.hour)), groups.indexOf(`${row.group_id}\n${row.cluster}`), row.rebalances]),
      }],
      rows: groups.length,
    };
  },
};

// Draw a chart, or draw it anew from the rows of its address: those that its table and its downloads have.
export async function draw(place, timeText) {
  const answer = await read(place.dataset.source);
  if (!answer) return;
  const { rows } = answer;
  const { rows: count, ...option } = KINDS[place.dataset.chart](rows, timeText, place.dataset);
  if (count) place.style.height = `${Math.min(900, 70 + 18 * count)}px`;
  let chart = drawn.get(place);
  if (!chart) {
    chart = init(place, null, { renderer: "canvas" });
    drawn.set(place, chart);
    new ResizeObserver(() => chart.resize()).observe(place);
  }
  chart.resize();
  chart.setOption(option, { replaceMerge: ["series"] });
  place.dataset.drawn = String(rows.length);
}
