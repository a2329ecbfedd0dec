// Annotations on the timeline of a group: what people and platforms did, below the lanes of queues.
import { css } from "./shared.js";

const HIGH = 3, REACH = 12, NEAR = 6, BOTTOM = 20, LONGEST = 300;
const clean = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u00b7");

const edge = (lanes) => lanes.height - BOTTOM;
const spanOf = (lanes, entry) => [lanes.x(entry.at), lanes.x(entry.until ?? entry.at)].map(Math.round);

export function drawAnnotations(lanes) {
  const { pen, data } = lanes, y = edge(lanes);
  lanes.place.dataset.annotations = String(data.annotations.length);
  pen.fillStyle = css("--accent");
  for (const entry of data.annotations) {
    if (entry.at > lanes.end || (entry.until ?? entry.at) < lanes.begin) continue;
    const [from, to] = spanOf(lanes, entry);
    pen.fillRect(from, y - HIGH, Math.max(2, to - from), HIGH);
    pen.beginPath();
    pen.moveTo(from - 4, y + 6);
    pen.lineTo(from + 5, y + 6);
    pen.lineTo(from + 0.5, y - 2);
    pen.fill();
  }
}

// The text of the annotations under the pointer; empty if there are none.
export function annotationAt(lanes, x, y) {
  if (Math.abs(y - edge(lanes)) > REACH) return "";
  const found = lanes.data.annotations.filter((entry) => {
    const [from, to] = spanOf(lanes, entry);
    return x >= from - NEAR && x <= to + NEAR;
  });
  const time = (at) => (at === null ? "not known" : lanes.timeText(new Date(at)));
  const texts = found.slice(0, 3).map((entry) => `${time(entry.at)} – ${time(entry.until)}\n${clean(entry.kind)}: ${clean(entry.text)}\n${clean(entry.concerns)}`);
  return texts.join("\n").slice(0, LONGEST * 3);
}
