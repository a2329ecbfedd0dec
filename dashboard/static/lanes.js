// Swimlanes: queues by time, each span in the colour of its owner, each rebalance a mark. Drawn on a canvas, because
// a chart library lays out every span anew for each frame of a pan.
import { annotationAt, drawAnnotations } from "./annotations.js";
import { drawFindings, drawMarks, findingAt } from "./marks.js";
import { css, palette, read, showRange } from "./shared.js";

const LEFT = 150, TOP = 24, BOTTOM = 20, LANE = 16, THIN = 3, LEGEND = 40, NEAR = 6, LABELLED = 60;
const drawn = new WeakMap();

const clean = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u00b7");
const short = (text, length) => (text.length > length ? `${text.slice(0, length - 9)}…${text.slice(-8)}` : text);
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

// A colour with a part of another one, both as #rrggbb.
function mixed(colour, other, part) {
  const [from, to] = [colour, other].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return `#${from.map((value, at) => Math.round(value + (to[at] - value) * part).toString(16).padStart(2, "0")).join("")}`;
}

// Whether white can be read on a colour better than black.
const isDark = (hex) => [0.3, 0.59, 0.11].reduce((sum, part, at) => sum + part * parseInt(hex.slice(1 + 2 * at, 3 + 2 * at), 16), 0) < 130;

class Lanes {
  constructor(place, timeText) {
    this.place = place;
    this.figure = place.closest("figure");
    this.canvas = place.querySelector("canvas");
    this.tip = place.querySelector(".tip");
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.timeText = timeText;
    this.view = null; // the times at the edges; null = all
    this.scroll = 0;
    this.lane = LANE;
    this.chosen = -1; // a colour: a member, or what several members share
    this.trait = "";
    this.mark = -1;
    this.listen();
  }

  async load() {
    const origin = this.figure.querySelector("[data-lane-origin]")?.value ?? "";
    const address = this.place.dataset.source + (origin ? `&origin=${encodeURIComponent(origin)}` : "");
    const data = await read(address);
    if (!data) return;
    const chosen = this.values?.[this.chosen];
    const mark = this.data?.marks[this.mark]?.id;
    this.data = data;
    this.colourBy();
    this.chosen = chosen === undefined ? -1 : this.values.indexOf(chosen);
    this.mark = mark === undefined ? -1 : data.marks.findIndex((entry) => entry.id === mark);
    const byQueue = data.queues.map(() => []);
    // Of an unknown cluster nothing is drawn beyond the last knowledge of it.
    this.known = data.known_until ?? Infinity;
    for (const span of data.spans) if (span[2] < this.known) byQueue[span[0]].push(span);
    for (const spans of byQueue) spans.sort((a, b) => a[2] - b[2]);
    const order = this.orderOf(byQueue);
    this.byQueue = order.map((queue) => byQueue[queue]);
    this.names = order.map((queue) => clean(short(data.queues[queue], 22)));
    // As high as its lanes, up to what a screen has.
    this.place.style.height = `${clamp(TOP + BOTTOM + LANE * data.queues.length, 100, innerWidth < 760 ? 340 : 420)}px`;
    this.legend();
    this.draw();
  }

  // What members are coloured by: themselves, or their host, version or workload, as far as it is known.
  colourBy() {
    const { members, traits } = this.data, own = traits[this.trait] ?? members;
    this.values = [...new Set(own.map((value) => value || "not known"))];
    this.key = own.map((value) => this.values.indexOf(value || "not known"));
    const select = this.figure.querySelector("[data-lane-colour]"), names = ["", ...Object.keys(traits)];
    if (select && select.options.length !== names.length) {
      select.replaceChildren(...names.map((name) => new Option(name || "member", name, false, name === this.trait)));
    }
  }

  // The queues in the order of their lanes: by name, or those with the same owner, as coloured, beside each other.
  orderOf(byQueue) {
    const order = byQueue.map((_, queue) => queue);
    if (this.figure.querySelector("[data-lane-order]")?.value !== "owner") return order;
    const last = byQueue.map((spans) => (spans.length ? this.key[spans.at(-1)[1]] : Infinity));
    return order.sort((a, b) => last[a] - last[b] || a - b);
  }

  // Colours that everybody can distinguish; of more than there are, the next ones are paler, and names on the spans decide.
  colour(value) {
    const colours = this.colours ?? palette(), round = Math.floor(value / colours.length) % 3;
    return round ? mixed(colours[value % colours.length], css("--panel"), 0.3 * round) : colours[value % colours.length];
  }

  get begin() { return this.view?.[0] ?? this.data.since; }
  get end() { return this.view?.[1] ?? this.data.until; }
  get width() { return this.place.clientWidth; }
  get height() { return this.place.clientHeight; }
  get room() { return this.height - TOP - BOTTOM; }
  x(at) { return LEFT + (at - this.begin) / (this.end - this.begin) * (this.width - LEFT); }
  at(x) { return this.begin + (x - LEFT) / (this.width - LEFT) * (this.end - this.begin); }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.paint(); });
  }

  paint() {
    if (!this.data) return;
    const { pen, canvas } = this, ratio = devicePixelRatio || 1, { width, height } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = css("--ink"), soft = css("--soft"), line = css("--line");
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const lane = this.lane, { begin, end } = this, scale = (width - LEFT) / (end - begin);
    this.scroll = clamp(this.scroll, 0, Math.max(0, this.byQueue.length * lane - this.room));
    const first = Math.floor(this.scroll / lane), last = Math.min(this.byQueue.length, Math.ceil((this.scroll + this.room) / lane));
    pen.save();
    pen.beginPath();
    pen.rect(0, TOP, width, this.room);
    pen.clip();
    const gap = lane > 8 ? 2 : lane > 3 ? 1 : 0;
    this.colours = palette();
    const colours = this.key.map((value) => (this.chosen >= 0 && this.chosen !== value ? line : this.colour(value)));
    const inks = this.values.map((_, value) => (isDark(this.colour(value)) ? "#ffffff" : "#10161c"));
    this.rects = 0;
    this.labels = this.values.map((name) => clean(short(name, 24)));
    if (lane <= THIN) {
      pen.restore();
      this.pixels(colours, scale, ratio);
    } else {
      for (let queue = first; queue < last; queue++) {
        const y = TOP + queue * lane - this.scroll;
        for (const [from, to, member] of this.visible(queue, scale)) {
          pen.fillStyle = colours[member];
          pen.fillRect(from, y + gap / 2, Math.max(1, to - from - (to - from > 3 ? 1 : 0)), lane - gap);
          this.rects += 1;
          if (lane >= 11 && to - from > LABELLED && colours[member] !== line) {
            pen.fillStyle = inks[this.key[member]];
            pen.fillText(this.labels[this.key[member]], from + 4, y + lane / 2, to - from - 8);
          }
        }
        if (lane >= 11) {
          pen.fillStyle = soft;
          pen.fillText(this.names[queue], 2, y + lane / 2, LEFT - 8);
        }
      }
      pen.restore();
    }
    this.unknown(soft, line);
    this.axis(soft, line, scale);
    drawMarks(this, ink);
    drawFindings(this);
    drawAnnotations(this);
    this.bar(line, soft);
    this.place.dataset.drawn = String(this.data.spans.length);
  }

  // The spans of a lane that are in view: left, right and member. Of those that share a pixel, the first.
  *visible(queue, scale) {
    const { begin, end, width } = this;
    let edge = -1;
    const known = Math.min(end, this.known);
    for (const [, member, from, to] of this.byQueue[queue]) {
      if (from > end) return;
      if (Math.min(to ?? known, known) < begin) continue;
      const x0 = Math.max(LEFT, LEFT + (from - begin) * scale), x1 = Math.min(width, LEFT + (Math.min(to ?? known, known) - begin) * scale);
      if (x1 - x0 < 1 && this.key[member] !== this.chosen) {
        if (x1 < edge) continue;
        edge = x0 + 1;
      }
      yield [x0, x1, member];
    }
  }

  // Lanes of few pixels: a row of pixels shows the first of its lanes, and of the others the chosen owner's spans.
  // Pixels are set in memory: so many rectangles take a canvas longer than a frame.
  pixels(colours, scale, ratio) {
    const { pen, canvas, lane } = this, wide = canvas.width, rows = Math.round(this.room * ratio);
    if (this.image?.width !== wide || this.image.height !== rows) this.image = pen.createImageData(wide, rows);
    const words = new Uint32Array(this.image.data.buffer), all = this.byQueue.length;
    const word = (colour) => {
      pen.fillStyle = colour;
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(pen.fillStyle.slice(at, at + 2), 16));
      return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
    };
    const inks = colours.map(word);
    words.fill(word(css("--panel")));
    for (let row = 0; row < rows; row++) {
      const first = Math.floor((row / ratio + this.scroll) / lane);
      const last = Math.min(all, this.chosen < 0 ? first + 1 : Math.max(first + 1, Math.ceil(((row + 1) / ratio + this.scroll) / lane)));
      for (let queue = first; queue < last; queue++) {
        for (const [from, to, member] of this.visible(queue, scale)) {
          if (queue > first && this.key[member] !== this.chosen) continue;
          const at = row * wide + Math.floor(from * ratio);
          words.fill(inks[member], at, Math.min((row + 1) * wide, Math.max(at + 1, row * wide + Math.round(to * ratio))));
          this.rects += 1;
        }
      }
    }
    pen.putImageData(this.image, 0, Math.round(TOP * ratio));
  }

  // Where the knowledge ends, with words.
  unknown(soft, line) {
    this.place.dataset.knownUntil = this.data.known_until ?? "";
    if (this.known >= this.end) return;
    const { pen, width } = this, x = Math.max(LEFT, this.x(this.known));
    pen.fillStyle = soft;
    if (x > LEFT) pen.fillRect(x, TOP, 1, this.room);
    const text = `unknown since ${this.timeText(new Date(this.known))}`, long = pen.measureText(text).width;
    // Where there is no room beside the end, the words are on a ground of their own; few groups have lanes down there.
    const left = Math.min(x + 8, width - long - 8), y = TOP + this.room - 14;
    pen.fillStyle = css("--panel");
    pen.fillRect(left - 4, y - 9, long + 8, 18);
    pen.strokeStyle = line;
    pen.strokeRect(left - 4, y - 9, long + 8, 18);
    pen.fillStyle = soft;
    pen.fillText(text, left, y);
  }

  axis(soft, line, scale) {
    const { pen, height } = this, step = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 86400, 604800].find((one) => one * 1000 * scale > 90) ?? 2592000;
    pen.textAlign = "center";
    for (let at = Math.ceil(this.begin / step / 1000) * step * 1000; at < this.end; at += step * 1000) {
      const x = this.x(at), text = this.timeText(new Date(at));
      pen.fillStyle = line;
      pen.fillRect(x, height - BOTTOM, 1, 4);
      pen.fillStyle = soft;
      pen.fillText(step < 60 ? text.slice(11, 19) : step < 86400 ? text.slice(11, 16) : text.slice(5, 10), x, height - 8);
    }
    pen.textAlign = "left";
  }

  bar(line, soft) {
    const all = this.byQueue.length * this.lane;
    if (all <= this.room) return;
    const { pen } = this, size = Math.max(20, this.room * this.room / all);
    pen.fillStyle = soft;
    pen.globalAlpha = 0.6;
    pen.fillRect(this.width - 5, TOP + this.scroll / (all - this.room) * (this.room - size), 4, size);
    pen.globalAlpha = 1;
  }

  zoom(factor, centre = (this.begin + this.end) / 2) {
    const span = clamp((this.end - this.begin) * factor, 1000, this.data.until - this.data.since);
    const part = (centre - this.begin) / (this.end - this.begin);
    this.show(centre - part * span, span);
  }

  pan(part) { this.show(this.begin + part * (this.end - this.begin), this.end - this.begin); }

  show(begin, span) {
    const { since, until } = this.data;
    const from = clamp(begin, since, until - span);
    // At the whole it stays the whole, also when the tables go on.
    this.view = span >= until - since ? null : [from, from + span];
    this.draw();
  }

  step(by) {
    const { marks } = this.data;
    if (!marks.length) return;
    this.mark = this.mark < 0 ? (by > 0 ? 0 : marks.length - 1) : clamp(this.mark + by, 0, marks.length - 1);
    const mark = marks[this.mark];
    if (mark.at < this.begin || mark.at > this.end) this.show(mark.at - (this.end - this.begin) / 2, this.end - this.begin);
    this.report(mark);
    this.draw();
  }

  report(mark) {
    const link = this.figure.querySelector("[data-lane-link]");
    link.href = `/rebalance?id=${encodeURIComponent(mark.id)}`;
    link.textContent = this.timeText(new Date(mark.at));
    link.hidden = false;
    this.figure.querySelector("[data-lane-status]").textContent = `${clean(mark.cause)}, ${mark.moved ?? 0} queues moved`;
  }

  open() { if (this.mark >= 0) location.assign(`/rebalance?id=${encodeURIComponent(this.data.marks[this.mark].id)}`); }

  // Lanes so high that all fit, down to a part of a pixel; or back to where they can be read.
  fit() {
    const all = this.room / Math.max(1, this.byQueue.length);
    this.lane = this.view === null && this.lane === LANE ? Math.min(LANE, all) : LANE;
    this.view = null;
    this.draw();
  }

  choose(member) {
    this.chosen = this.chosen === member ? -1 : member;
    this.legend();
    this.draw();
  }

  legend() {
    const list = this.figure.querySelector("[data-lane-legend]");
    list.replaceChildren(...this.values.slice(0, LEGEND).map((name, member) => {
      const button = document.createElement("button"), chip = document.createElement("i"), text = document.createElement("span");
      button.type = "button";
      button.setAttribute("aria-pressed", String(member === this.chosen));
      chip.style.background = this.colour(member);
      text.textContent = clean(short(name, 30));
      button.title = clean(short(name, 200));
      button.append(chip, text);
      button.addEventListener("click", () => this.choose(member));
      return button;
    }));
    if (this.values.length > LEGEND) list.append(`and ${this.values.length - LEGEND} more`);
  }

  // The mark or span under the pointer.
  under(x, y) {
    const finding = findingAt(this, x, y);
    if (finding) return { finding };
    if (y < TOP) {
      const near = this.data.marks.findIndex((mark) => Math.abs(this.x(mark.at) - x) < NEAR);
      return near < 0 ? null : { mark: near };
    }
    const annotation = annotationAt(this, x, y);
    if (annotation) return { annotation };
    const queue = Math.floor((y - TOP + this.scroll) / this.lane), at = this.at(x);
    const span = x < LEFT || at > this.known ? null : this.byQueue[queue]?.findLast((held) => held[2] <= at && (held[3] === null || at < held[3]));
    return span ? { span } : null;
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const found = this.under(x, y);
    this.tip.hidden = !found;
    if (!found) return;
    const open = this.data.known_until === null ? "now" : `at least ${this.timeText(new Date(this.known))}`;
    const time = (at) => (at === null ? open : this.timeText(new Date(at)));
    if (found.finding) {
      this.tip.textContent = `${found.finding.severity}, ${time(found.finding.at)} – ${time(found.finding.until)}\n${clean(short(found.finding.text, 300))}`;
    } else if (found.annotation) {
      this.tip.textContent = found.annotation;
    } else if (found.span) {
      const [queue, member, from, to] = found.span;
      this.tip.textContent = `${clean(short(this.data.queues[queue], 80))}\n${clean(short(this.data.members[member], 80))}\n${time(from)} – ${time(to)}`;
    } else {
      const mark = this.data.marks[found.mark];
      this.tip.textContent = `${time(mark.at)}\n${clean(short(mark.cause, 200))}\n${mark.moved ?? 0} queues moved`;
    }
    this.tip.style.left = `${Math.min(x + 12, this.width - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${Math.min(y + 14, this.height - this.tip.offsetHeight - 4)}px`;
  }

  listen() {
    const { canvas } = this;
    const actions = {
      in: () => this.zoom(0.5), out: () => this.zoom(2), earlier: () => this.pan(-0.25), later: () => this.pan(0.25),
      previous: () => this.step(-1), next: () => this.step(1), fit: () => this.fit(),
      range: () => showRange(Math.round(this.begin), Math.round(this.end)),
    };
    const keys = {
      "+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later", n: "next", p: "previous", 0: "fit",
    };
    for (const button of this.figure.querySelectorAll("[data-lane]")) {
      button.addEventListener("click", () => this.data && actions[button.dataset.lane]());
    }
    this.figure.querySelector("[data-lane-origin]")?.addEventListener("change", () => this.load());
    this.figure.querySelector("[data-lane-order]")?.addEventListener("change", () => this.load());
    this.figure.querySelector("[data-lane-colour]")?.addEventListener("change", (event) => {
      this.trait = event.target.value;
      this.chosen = -1;
      this.load();
    });
    canvas.addEventListener("keydown", (event) => {
      if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
      const rows = { ArrowDown: 3, ArrowUp: -3, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 }[event.key];
      if (keys[event.key]) actions[keys[event.key]]();
      else if (rows) { this.scroll += rows * this.lane; this.draw(); }
      else if (event.key === "Enter") this.open();
      else return;
      event.preventDefault();
    });
    canvas.addEventListener("wheel", (event) => {
      if (!this.data) return;
      const all = this.byQueue.length * this.lane;
      if (event.ctrlKey || event.shiftKey) {
        const move = event.deltaY || event.deltaX;
        if (event.ctrlKey) this.zoom(move > 0 ? 1.2 : 1 / 1.2, this.at(event.offsetX));
        else this.pan(move / this.width);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan(event.deltaX / this.width);
      } else {
        const before = this.scroll;
        this.scroll = clamp(before + event.deltaY, 0, Math.max(0, all - this.room));
        // At its end the page scrolls on.
        if (this.scroll === before) return;
        this.draw();
      }
      event.preventDefault();
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.data) return;
      drag = { x: event.clientX, y: event.clientY, begin: this.begin, scroll: this.scroll, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.data) return;
      if (!drag) { this.hover(event); return; }
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
      this.scroll = drag.scroll - dy;
      this.show(drag.begin - dx / (this.width - LEFT) * (this.end - this.begin), this.end - this.begin);
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = drag && !drag.moved && this.data ? this.under(event.offsetX, event.offsetY) : null;
      drag = null;
      if (!found) return;
      if (found.span) { this.choose(this.key[found.span[1]]); return; }
      if (found.finding) { location.assign(`/findings?${new URLSearchParams({ finding_id: found.finding.id, open: "any" })}`); return; }
      if (found.mark === undefined) return;
      this.mark = found.mark;
      this.open();
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(this.place);
  }
}

// Draw the lanes of a place, or draw them anew from what its address has now; where they are looked at stays.
export function drawLanes(place, timeText) {
  let lanes = drawn.get(place);
  if (!lanes) {
    lanes = new Lanes(place, timeText);
    drawn.set(place, lanes);
    place.lanes = lanes;
  }
  return lanes.load();
}
