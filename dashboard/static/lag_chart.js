// The lag over time: messages above, the age of the oldest unread message below, with rebalances and outages. Where the
// cluster was not known there is no line, and the ground is grey.

const UNITS = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
// The largest unit in which a length is at least 1.
const ageText = (seconds) => {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? UNITS.at(-1);
  return `${Math.round(seconds / size * 10) / 10} ${unit}`;
};
const amountText = (number) => (number >= 1e6 ? `${Math.round(number / 1e5) / 10} M` : number >= 1e4 ? `${Math.round(number / 1e3)} k` : String(number));
const TOP = 46, HIGH = 110, GAP = 40, MARKS = 2;

export function lagChart(answer, timeText, { since, until }, { axisLook, frame, palette, css, clean, short, time }) {
  const { rows, step_ms: step, gaps, marks } = answer, first = Math.floor(since / step) * step;
  const times = [], groups = [...new Set(rows.map((row) => row.group_id))], colours = palette();
  for (let at = first; at < until; at += step) times.push(at);
  const place = (at) => Math.floor((at - first) / step), empty = () => times.map(() => null);
  const isAlone = groups.length < 2, told = new Map(rows.map((row) => [`${place(time(row.at))} ${row.group_id}`, row]));
  const line = (name, grid, colour, value, more = {}) => {
    const data = empty();
    for (const [at, group] of [...told.keys()].map((key) => [Number(key.split(" ", 1)[0]), key.slice(key.indexOf(" ") + 1)])) {
      if (group === (more.group ?? groups[0])) data[at] = value(told.get(`${at} ${group}`));
    }
    return { type: "line", name, xAxisIndex: grid, yAxisIndex: grid, data, showSymbol: data.filter((one) => one !== null).length < 4, symbolSize: 5, lineStyle: { width: 1.5, ...more.style }, itemStyle: { color: colour }, step: "end" };
  };
  const age = (row) => { const ms = row.lag_ms ?? row.lag_min_ms; return ms === null ? null : ms / 1000; };
  const lines = isAlone
    ? [line("all queues", 0, colours[0], (row) => row.lag), line("worst queue", 0, colours[1], (row) => row.queue_lag, { style: { type: "dashed" } }), line("oldest unread", 1, colours[0], age)]
    : groups.flatMap((group, number) => [0, 1].map((grid) => line(clean(short(group, 40)), grid, colours[number % colours.length], grid ? age : (row) => row.lag, { group })));
  // Ground of a part of the time, from top to bottom, on axes of their own.
  const ground = (name, spans, colour, opacity) => [0, 1].map((grid) => {
    const data = empty();
    for (const [begin, end] of spans) for (let at = Math.max(0, place(begin)); at < times.length && times[at] < end; at += 1) data[at] = 1;
    return { type: "bar", name, xAxisIndex: grid, yAxisIndex: grid + MARKS, data, barGap: "-100%", barWidth: "100%", silent: true, itemStyle: { color: colour, opacity } };
  });
  const shown = marks.map((mark) => ({ ...mark, at: time(mark.at) })), rebalances = empty();
  for (const mark of shown) if (place(mark.at) in rebalances) rebalances[place(mark.at)] = 0.97;
  const points = [0, 1].map((grid) => ({ type: "line", name: "rebalances", xAxisIndex: grid, yAxisIndex: grid + MARKS, data: rebalances, connectNulls: false, lineStyle: { opacity: 0 }, symbol: "triangle", symbolRotate: 180, symbolSize: 7, showSymbol: true, showAllSymbol: true, itemStyle: { color: css("--ink") } }));
  const outages = shown.filter((mark) => mark.outage_ms > 0).map((mark) => [mark.at, mark.at + mark.outage_ms]);
  const unknown = gaps.map((gap) => [time(gap.since), time(gap.until)]);
  const label = (at) => timeText(new Date(times[at])).slice(until - since > 86_400_000 + step ? 5 : 11, 16);
  const look = axisLook(), grids = [0, 1].map((grid) => ({ left: 64, right: 16, top: TOP + grid * (HIGH + GAP), height: HIGH }));
  const hidden = { type: "value", min: 0, max: 1, show: false };
  return {
    ...frame("lines"),
    legend: { top: 0, left: 0, type: "scroll", itemWidth: 14, itemHeight: 8, textStyle: { color: css("--soft") }, data: [...new Set(lines.map((one) => one.name)), "rebalances", ...(outages.length ? ["nobody read a queue"] : []), ...(unknown.length ? ["not known"] : [])] },
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    tooltip: { ...frame("lines").tooltip, formatter: (parts) => {
      const at = parts[0].dataIndex, head = timeText(new Date(times[at] + step)).slice(0, 19);
      if (unknown.some(([begin, end]) => begin < times[at] + step && times[at] + step <= end)) return `${head}\nthe cluster was not known`;
      const texts = groups.flatMap((group) => {
        const row = told.get(`${at} ${group}`);
        if (!row || row.lag === null) return [];
        const old = row.lag_ms !== null ? ageText(row.lag_ms / 1000) : row.lag_min_ms !== null ? `more than ${ageText(row.lag_min_ms / 1000)}` : "for a time that is not known";
        return [`${clean(short(group, 40))}: ${row.lag} messages, the oldest ${old}${row.queues_unknown ? `; of ${row.queues_unknown} queues not known` : ""}`];
      });
      const then = shown.filter((mark) => place(mark.at) === at).slice(0, 3).map((mark) => `rebalance: ${clean(mark.trigger.replaceAll("_", " "))}`);
      return [head, ...(texts.length ? texts : ["no lag is known"]), ...then].join("\n");
    } },
    grid: grids,
    xAxis: [0, 1].map((gridIndex) => ({ gridIndex, type: "category", data: times.map((_, at) => label(at)), ...look, splitLine: { show: false } })),
    yAxis: [
      { gridIndex: 0, type: "value", min: 0, minInterval: 1, splitNumber: 3, name: "messages", nameTextStyle: { color: css("--soft"), align: "left" }, ...look, axisLabel: { ...look.axisLabel, formatter: amountText } },
      { gridIndex: 1, type: "value", min: 0, splitNumber: 3, name: "oldest unread", nameTextStyle: { color: css("--soft"), align: "left" }, ...look, axisLabel: { ...look.axisLabel, formatter: ageText } },
      { gridIndex: 0, ...hidden }, { gridIndex: 1, ...hidden },
    ],
    series: [...ground("not known", unknown, css("--line"), 0.6), ...ground("nobody read a queue", outages, css("--critical"), 0.25), ...lines, ...points],
    high: TOP + 2 * HIGH + GAP + 28,
    grids: 2,
    firstMs: first,
  };
}
