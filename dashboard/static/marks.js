// What is above the lanes of a timeline: rebalances as marks, whose shapes say their kind, and findings as bars.
import { css } from "./shared.js";

const TOP = 24, HIGH = 5, REACH = 9;
// A shape for each kind of cause, around (0, 0); the names of kinds are in the caption of the timeline.
const SHAPES = {
  up: [[-5, 4], [5, 4], [0, -5]],
  down: [[-5, -4], [5, -4], [0, 5]],
  diamond: [[0, -5], [5, 0], [0, 5], [-5, 0]],
  square: [[-4, -4], [4, -4], [4, 4], [-4, 4]],
};
const KINDS = {
  member_joined: "up", group_created: "up", member_left: "down", member_gone: "down", session_expired: "cross",
  queue_count_changed: "diamond", topic_learned: "diamond", subscription_changed: "diamond", strategy_changed: "square",
  settings_changed: "square", cooperative_follow_up: "square",
};

function shape(pen, kind, x, y) {
  pen.beginPath();
  if (kind === "cross") {
    pen.moveTo(x - 4, y - 4); pen.lineTo(x + 4, y + 4); pen.moveTo(x + 4, y - 4); pen.lineTo(x - 4, y + 4);
    pen.lineWidth = 2;
    pen.stroke();
    pen.lineWidth = 1;
  } else if (SHAPES[kind]) {
    SHAPES[kind].forEach(([dx, dy], number) => (number ? pen.lineTo(x + dx, y + dy) : pen.moveTo(x + dx, y + dy)));
    pen.fill();
  } else {
    pen.arc(x, y, 4, 0, 7);
    pen.fill();
  }
}

export function drawMarks(lanes, ink) {
  const { pen } = lanes, red = css("--mark");
  let filled = -1;
  lanes.data.marks.forEach((mark, number) => {
    if (mark.at < lanes.begin || mark.at > lanes.end) return;
    const x = Math.round(lanes.x(mark.at)), isChosen = number === lanes.mark;
    if (x === filled && !isChosen) return;
    filled = x;
    pen.fillStyle = isChosen ? red : ink;
    pen.globalAlpha = isChosen ? 1 : 0.28;
    pen.fillRect(x, TOP, isChosen ? 2 : 1, lanes.room);
    pen.globalAlpha = 1;
    pen.fillStyle = pen.strokeStyle = isChosen || mark.status === "failed" ? red : ink;
    shape(pen, KINDS[mark.trigger], x, TOP - 7);
  });
}

const spanOf = (lanes, entry) => {
  const until = Math.min(entry.until ?? lanes.end, lanes.end), left = Math.max(lanes.x(lanes.begin), lanes.x(entry.at));
  return [left, Math.max(left + 3, lanes.x(until))];
};
const isInView = (lanes, entry) => entry.at <= lanes.end && (entry.until ?? Infinity) >= lanes.begin;

export function drawFindings(lanes) {
  const { pen } = lanes, rank = { info: 0, warning: 1, critical: 2 };
  lanes.place.dataset.findings = String(lanes.data.findings.length);
  for (const entry of [...lanes.data.findings].sort((a, b) => rank[a.severity] - rank[b.severity])) {
    if (!isInView(lanes, entry)) continue;
    const [from, to] = spanOf(lanes, entry);
    pen.fillStyle = css(`--${entry.severity}`);
    pen.fillRect(from, 1, to - from, HIGH);
  }
}

// The finding under the pointer, the worst of several; null if there is none.
export function findingAt(lanes, x, y) {
  if (y > REACH) return null;
  const found = lanes.data.findings.filter((entry) => {
    if (!isInView(lanes, entry)) return false;
    const [from, to] = spanOf(lanes, entry);
    return x >= from - 2 && x <= to + 2;
  });
  return found.find((entry) => entry.severity === "critical") ?? found.at(-1) ?? null;
}
