// Charts drawn by ECharts. Each has a table with the same numbers beside it.
import { lagChart } from "./lag_chart.js";
import { css, palette, read, showRange } from "./shared.js";
import { init } from "./vendor/echarts.min.js";

const drawn = new WeakMap(), places = new WeakMap(), starts = new WeakMap();

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

function lines(rows, series, timeText, unit, until = null) {
  // A minute without a row is like the last before it.
  const last = until && rows.length && time(rows[0].minute) < until ? [{ ...rows[0], minute: new Date(until).toISOString() }] : [];
  const ordered = [...[...rows].reverse(), ...last];
  return {
    ...frame("lines"),
    legend: { top: 0, left: 0, itemWidth: 14, itemHeight: 2, textStyle: { color: css("--soft") } },
    color: unit ? palette() : [css("--accent"), css("--warning"), css("--critical"), css("--soft")],
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

// All of a range, also where only a part of it has rows.
const within = (since, until, option) => ({ ...option, xAxis: { ...option.xAxis, min: Number(since), max: Number(until) } });

const KINDS = {
  lines: (rows, timeText, { since, until }) => within(since, until, lines(rows, [["spread", "spread"], ["idle members", "idle_members"], ["unassigned queues", "unassigned_queues"], ["members", "members"]]
    .map(([name, field]) => ({ name, at: (row) => time(row.minute), value: (row) => row[field] })), timeText, "", Number(until))),
  outages: (rows, timeText, { since, until }) => within(since, until, lines(rows, [["at least", "outage_min_ms"], ["at most", "outage_max_ms"]].map(([name, field]) => ({
    name, type: "bar", at: (row) => time(row.minute), value: (row) => (row[field] ?? 0) / 1000,
  })), timeText, "s")),
  delay: (rows, timeText, { since, until }) => {
    const clusters = [...new Set(rows.map((row) => row.cluster))];
    const option = lines(rows, clusters.map((cluster) => ({
      name: clean(short(cluster, 40)), of: rows.filter((row) => row.cluster === cluster), at: (row) => time(row.hour), value: (row) => row.p95_ms / 1000,
    })), timeText, "s");
    // All of the day, also where only one of its hours has rebalances.
    Object.assign(option.xAxis, { min: Number(since), max: Number(until) });
    return option;
  },
  heat: (rows, timeText, { since, until, bin: length }) => {
    const bin = Number(length) || 3_600_000, isLong = until - since > 86_400_000 + bin;
    const groups = [...new Set(rows.map((row) => `${row.group_id}\n${row.cluster}`))].reverse();
    const all = [];
    for (let at = Number(since); at < Number(until); at += bin) all.push(at);
    const most = Math.max(1, ...rows.map((row) => row.rebalances));
    const pairs = groups.map((name) => name.split("\n")), count = new Map();
    for (const [group] of pairs) count.set(group, (count.get(group) ?? 0) + 1);
    // Groups of several clusters may share a name.
    const names = pairs.map(([group, cluster]) => (count.get(group) > 1 ? `${group} · ${cluster}` : group));
    return {
      ...frame("heat"),
      tooltip: { ...frame("heat").tooltip, formatter: ({ value }) => `${clean(short(names[value[1]], 60))}\n${timeText(new Date(all[value[0]])).slice(0, 19)}: ${value[2]} rebalances` },
      xAxis: { type: "category", data: all.map((at) => timeText(new Date(at)).slice(isLong ? 5 : 11, bin < 60_000 ? 19 : 16)), ...axisLook(), splitLine: { show: false } },
      yAxis: { type: "category", data: names.map((name) => clean(short(name, 26))), ...axisLook(), splitLine: { show: false } },
      visualMap: {
        min: 0, max: most, calculable: false, orient: "horizontal", right: 16, top: 0, itemWidth: 10, itemHeight: 90, text: [String(most), "0"],
        textStyle: { color: css("--soft"), fontSize: 11 }, inRange: { color: [css("--heat-0"), css("--heat-1")] },
      },
      series: [{
        type: "heatmap", itemStyle: { borderColor: css("--panel"), borderWidth: 1 }, emphasis: { disabled: true },
        data: rows.map((row) => [all.indexOf(time(row.hour)), groups.indexOf(`${row.group_id}\n${row.cluster}`), row.rebalances]),
      }],
      rows: groups.length,
      // A click opens the group at that time, with as much before and after it.
      open: ([column, row]) => {
        const [group, cluster] = pairs[row];
        location.assign(`/group?${new URLSearchParams({ cluster, group, from: all[column] - bin, to: all[column] + 2 * bin })}`);
      },
    };
  },
  lag: (_rows, timeText, place, answer) => lagChart(answer, timeText, { since: Number(place.since), until: Number(place.until) }, { axisLook, frame, palette, css, clean, short, time }),
  fleet: (rows, timeText, { since, until, bin }) => fleet(rows, timeText, Number(since), Number(until), Number(bin)),
};

// What happened in the fleet: one strip for each number, stacked by cluster. Of many clusters the last are one.
const STRIPS = [["rebalances", "Rebalances"], ["outage_max_ms", "Nobody read queues for, at most"], ["unread_queues", "Unread queues"], ["stalled_queues", "Stalled queues"]];

const lengthText = (seconds) => (seconds < 120 ? `${Math.round(seconds)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

function fleet(rows, timeText, since, until, bin) {
  const colours = palette(), total = new Map();
  for (const row of rows) total.set(row.cluster, (total.get(row.cluster) ?? 0) + (row.rebalances ?? 0));
  const names = [...total.keys()].sort((a, b) => total.get(b) - total.get(a) || (a < b ? -1 : 1));
  const most = colours.length, own = names.length > most ? names.slice(0, most - 1) : names;
  const clusters = [...own, ...(names.length > most ? ["other clusters"] : [])];
  const times = [], unknown = new Set();
  for (let at = since; at < until; at += bin) times.push(at);
  const sums = STRIPS.map(() => clusters.map(() => times.map(() => 0)));
  for (const row of rows) {
    const place = Math.round((time(row.hour) - since) / bin), found = own.indexOf(row.cluster), cluster = found < 0 ? clusters.length - 1 : found;
    if (row.rebalances === null) { unknown.add(place); continue; }
    STRIPS.forEach(([field], strip) => { sums[strip][cluster][place] += field === "outage_max_ms" ? row[field] / 1000 : row[field]; });
  }
  const isNarrow = innerWidth < 760, wide = isNarrow ? 1 : 2, share = 100 / wide, high = 92, gap = 46;
  const grids = STRIPS.map((_, strip) => ({
    left: `${(strip % wide) * share + (isNarrow ? 12 : 4)}%`, width: `${share - (isNarrow ? 14 : 6)}%`, top: 52 + Math.floor(strip / wide) * (high + gap), height: high,
  }));
  const label = (place) => timeText(new Date(times[place])).slice(until - since > 86_400_000 + bin ? 5 : 11, bin < 60_000 ? 19 : 16);
  const axes = STRIPS.map((_, gridIndex) => ({ gridIndex, type: "category", data: times.map((_, place) => label(place)), ...axisLook(), splitLine: { show: false } }));
  // Where nothing was known of a cluster, its part of the strip is hatched.
  const hatched = { type: "bar", barGap: "-100%", barWidth: "100%", silent: true, itemStyle: { color: css("--line"), opacity: 0.6 } };
  return {
    animation: false, textStyle: { fontFamily: "inherit", color: css("--soft") },
    legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 8, textStyle: { color: css("--soft") }, data: clusters.map((name) => clean(short(name, 40))) },
    tooltip: { ...frame("lines").tooltip, axisPointer: { type: "shadow" }, formatter: (parts) => {
      const place = parts[0].dataIndex, strip = parts[0].axisIndex, head = `${timeText(new Date(times[place])).slice(0, 19)}, ${STRIPS[strip][1]}`;
      const lines = clusters.map((name, cluster) => [name, sums[strip][cluster][place]]).filter(([, value]) => value).map(([name, value]) => `${clean(short(name, 40))}: ${strip === 1 ? lengthText(value) : value}`);
      return [head, ...(lines.length ? lines : ["none"]), ...(unknown.has(place) ? ["not all clusters were known"] : [])].join("\n");
    } },
    grid: grids, xAxis: axes,
    yAxis: STRIPS.map(([, name], gridIndex) => ({ gridIndex, type: "value", minInterval: 1, splitNumber: 2, ...axisLook(), axisLabel: { ...axisLook().axisLabel, formatter: gridIndex === 1 ? lengthText : undefined }, name, nameGap: 8, nameTextStyle: { color: css("--ink"), align: "left" } })),
    series: STRIPS.flatMap((_, strip) => [
      ...clusters.map((name, cluster) => ({
        name: clean(short(name, 40)), type: "bar", stack: String(strip), xAxisIndex: strip, yAxisIndex: strip, barCategoryGap: "15%",
        itemStyle: { color: colours[cluster] }, data: sums[strip][cluster],
      })),
      { ...hatched, xAxisIndex: strip, yAxisIndex: strip, z: 0, data: times.map((_, place) => (unknown.has(place) ? Math.max(1, ...times.map((__, at) => clusters.reduce((sum, ___, cluster) => sum + sums[strip][cluster][at], 0))) : null)) },
    ]),
    high: 52 + Math.ceil(STRIPS.length / wide) * (high + gap),
    grids: STRIPS.length,
  };
}

// A drag over a chart marks a range of time, and opens the page for it.
const NEAREST = 6;

function zoomable(place, chart, timeOf) {
  const mark = document.createElement("div");
  mark.className = "zoom-mark";
  mark.hidden = true;
  place.append(mark);
  let from = null;
  const x = (event) => event.clientX - place.getBoundingClientRect().left;
  const hide = () => { from = null; mark.hidden = true; };
  place.addEventListener("pointerdown", (event) => { if (event.button === 0) from = { x: x(event), y: event.offsetY }; });
  place.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [left, right] = [from.x, x(event)].sort((a, b) => a - b);
    mark.hidden = right - left < NEAREST;
    mark.style.left = `${left}px`;
    mark.style.width = `${right - left}px`;
  });
  place.addEventListener("pointerleave", hide);
  place.addEventListener("pointercancel", hide);
  place.addEventListener("pointerup", (event) => {
    const start = from, end = x(event);
    hide();
    if (!start || Math.abs(end - start.x) < NEAREST) return;
    const times = [start.x, end].map((at) => timeOf([at, start.y])).sort((a, b) => a - b);
    if (times.every(Number.isFinite) && times[1] - times[0] >= 1000) showRange(...times.map(Math.round));
  });
}

// Draw a chart, or draw it anew from the rows of its address: those that its table and its downloads have.
export async function draw(place, timeText) {
  const answer = await read(place.dataset.source);
  if (!answer) return;
  const { rows } = answer;
  const { rows: count, high, grids = 1, open, firstMs, ...option } = KINDS[place.dataset.chart](rows, timeText, place.dataset, answer);
  if (count || high) place.style.height = `${high ?? Math.min(900, 70 + 18 * count)}px`;
  let chart = drawn.get(place);
  if (!chart) {
    chart = init(place, null, { renderer: "canvas" });
    drawn.set(place, chart);
    new ResizeObserver(() => chart.resize()).observe(place);
    zoomable(place, chart, (point) => {
      const grid = [...Array(places.get(place)).keys()].find((index) => chart.containPixel({ gridIndex: index }, point)) ?? 0;
      const [at] = chart.convertFromPixel({ gridIndex: grid }, point);
      const { since, bin } = place.dataset;
      return chart.getOption().xAxis[grid].type === "time" ? at : (starts.get(place) ?? Number(since)) + at * (Number(bin) || 3_600_000);
    });
  }
  places.set(place, grids);
  if (firstMs !== undefined) starts.set(place, firstMs);
  chart.off("click");
  if (open) chart.on("click", ({ value }) => open(value));
  chart.resize();
  chart.setOption(option, { replaceMerge: ["series"] });
  place.dataset.drawn = String(rows.length);
}
