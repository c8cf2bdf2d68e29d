// Draws the view that Python sends: a tree of blocks (see labkit/widgets/view.py). No scheduling logic here.
// A small virtual DOM keeps focus and slider grips in place while a picture is redrawn.

const h = (tag, props, ...kids) => ({ tag, props: props || {}, kids: kids.flat(9).filter((k) => k !== null && k !== undefined && k !== false) });
const cls = (...names) => names.filter(Boolean).join(" ");

function create(v) {
  if (typeof v !== "object") return document.createTextNode(String(v));
  const el = document.createElement(v.tag);
  el._h = {};
  setProps(el, {}, v.props);
  for (const k of v.kids) el.appendChild(create(k));
  if (v.tag === "select") el.value = v.props.value;
  return el;
}

function setProps(el, before, after) {
  for (const k of Object.keys(before)) if (!(k in after)) setProp(el, k, null);
  for (const k of Object.keys(after)) if (before[k] !== after[k] || k === "value" || k === "checked") setProp(el, k, after[k]);
}

function setProp(el, k, v) {
  if (k.startsWith("on")) {
    const name = k.slice(2);
    if (!(name in el._h)) el.addEventListener(name, (e) => el._h[name] && el._h[name](e));
    el._h[name] = v;
  } else if (k === "style") el.style.cssText = v || "";
  else if (k === "value" && el.tagName === "OPTION") el.setAttribute(k, v); // an empty value must not become the text
  else if (k === "value") {
    if (v !== null && el._dirty !== true && el.value !== String(v)) el.value = v;
  } else if (k === "checked") { if (el._dirty !== true) el.checked = !!v; }
  else if (k === "open") { if (el._open !== v) { el._open = v; el.open = !!v; } }
  else if (v === null || v === false || v === undefined) el.removeAttribute(k);
  else el.setAttribute(k, v === true ? "" : v);
}

function patch(parent, node, before, after) {
  if (before === undefined || node === undefined) return parent.appendChild(create(after));
  if (typeof before !== typeof after || (typeof after !== "object" ? before !== after : before.tag !== after.tag || before.props.key !== after.props.key)) {
    const fresh = create(after);
    parent.replaceChild(fresh, node);
    return fresh;
  }
  if (typeof after !== "object") return node;
  setProps(node, before.props, after.props);
  const kids = Array.from(node.childNodes);
  for (let i = after.kids.length; i < kids.length; i++) node.removeChild(kids[i]);
  for (let i = 0; i < after.kids.length; i++) patch(node, kids[i], before.kids[i], after.kids[i]);
  if (after.tag === "select" && node._dirty !== true) node.value = after.props.value;
  return node;
}

// Long plugin names may break between their words.
const humps = (text) => String(text).replace(/([a-z])(?=[A-Z])/g, "$1\u200b");

const GLYPH = { pass: "✓", fail: "✕", skip: "–", wait: "◷", error: "!", now: "▸" };

function cell(c) {
  if (c === null || c === undefined) return "–";
  if (typeof c !== "object") return /^[A-Za-z]+$/.test(c) ? h("span", { class: "lk-word" }, humps(c)) : String(c);
  if (c.stack)
    return h("div", { class: "lk-stack", role: "img", "aria-label": c.label }, c.stack.map((s) =>
      h("i", { style: `width:${s.width}%;background:var(--lk-p-${s.color});${s.color === "own" ? "outline:1px solid var(--lk-p-own-edge);outline-offset:-1px" : ""}`, title: s.label })));
  if (c.status)
    return h("span", { class: cls("lk-" + (c.status === "error" ? "fail" : c.status), "lk-strong") }, GLYPH[c.status] + (c.text ? "\u00a0" : "") + humps(c.text));
  return h("span", { class: c.strong ? "lk-strong" : null }, c.text);
}

const B = {
  toolbar: (b, send) => h("div", { class: "lk-bar" }, h("h3", { class: "lk-title" }, b.title), b.sub && h("span", { class: "lk-sub" }, b.sub),
    h("span", { class: "lk-grow" }), b.clock && h("span", { class: "lk-clock", "aria-label": b.clock_label || "virtual clock" }, b.clock), b.buttons && b.buttons.length > 0 && h("span", { class: "lk-end" }, b.buttons.map((x) => button(x, send)))),
  buttons: (b, send) => h("div", { class: "lk-bar" }, b.items.map((x) => button(x, send))),
  grid: (b, send) => h("div", { class: cls("lk-grid", b.keep && "lk-keep"), style: `grid-template-columns:${b.columns}` }, blocks(b.items, send)),
  card: (b, send) => h("div", { class: "lk-card", role: b.title ? "group" : null, "aria-label": b.title || null }, b.title && h("h4", null, b.title), blocks(b.items, send)),
  verdict: (b) => h("div", { "aria-live": "polite", "aria-atomic": "true" }, h("p", { class: cls("lk-verdict", b.status && "lk-" + b.status) }, b.text), b.why && h("p", { class: "lk-why" }, b.why)),
  heading: (b) => h("h4", { class: "lk-h" }, b.text),
  text: (b) => h("p", { class: b.mute ? "lk-sub" : null }, b.text),
  notice: (b) => h("div", { class: cls("lk-notice", "lk-" + (b.status === "error" ? "fail" : b.status)), role: "note" }, h("b", null, GLYPH[b.status] + " "), b.text, b.detail && h("pre", null, b.detail)),
  pre: (b) => h("pre", { tabindex: "0", "aria-label": b.label || null }, b.text),
  chips: (b) => h("div", null, b.title && h("h4", { class: "lk-h" }, b.title), h("ul", { class: "lk-chips" }, b.items.map((x) => h("li", { class: x.status && "lk-" + x.status }, x.text)))),
  legend: (b) => h("ul", { class: "lk-legend", "aria-label": b.label || null }, b.items.map((x) => h("li", null, h("span", { class: "lk-swatch", style: `background:var(--lk-p-${x.color})` }), x.text))),
  details: (b, send) => h("details", { open: !!b.open }, h("summary", null, b.summary), blocks(b.items, send)),
  nodes: (b) => h("div", { class: "lk-zones" }, b.groups.map((g) => h("div", { class: "lk-zone" }, g.title && h("b", null, g.title), g.nodes.map(nodeCard)))),
  table: (b) => {
    const t = h("table", null, b.caption && h("caption", null, b.caption),
      h("thead", null, h("tr", null, b.columns.map((c) => h("th", { scope: "col", class: c.num ? "lk-num" : null, style: c.width ? `width:${c.width}` : null }, c.text)))),
      h("tbody", null, b.rows.map((r) => h("tr", { class: r.win ? "lk-is-win" : null }, r.cells.map((c, i) =>
        i === 0 ? h("th", { scope: "row" }, cell(c)) : h("td", { class: b.columns[i] && b.columns[i].num ? "lk-num" : null }, cell(c)))))));
    return b.rows.length > 12 ? h("div", { class: "lk-scroll", tabindex: "0", role: "group", "aria-label": b.caption || "table" }, t) : h("div", { class: "lk-table" }, t);
  },
  timeline: (b) => h("div", { role: "img", "aria-label": b.label }, b.lanes.map((l) => h("div", { class: "lk-lane" }, h("span", null, l.name), h("div", null,
    l.spans.map((s) => h("i", { class: s.status && "lk-" + s.status, style: `left:min(${s.from}%, calc(100% - 16px));width:${Math.max(0.5, s.to - s.from)}%`, title: s.text }, s.text)),
    b.now !== undefined && b.now !== null && h("em", { style: `left:${b.now}%` }))))),
  controls: (b, send) => h("div", { class: cls("lk-ctl", b.items.length > 3 && b.items.every((c) => c.kind === "check") && "lk-checks", b.items.length > 3 && b.items.every((c) => c.kind === "check" || c.kind === "weight") && "lk-many", b.items.length === 1 && b.items[0].id === "search" && "lk-search") }, b.items.map((c) => control(c, send))),
};

function nodeCard(n) {
  return h("div", { class: cls("lk-node", n.win && "lk-is-win", n.hatch && "lk-hatch") },
    h("div", { class: "lk-node-head" }, h("b", null, n.name), h("span", null, n.figure)),
    (n.meters || []).map((m) => h("div", { class: "lk-meter" }, m.text && h("small", null, h("span", null, m.text), h("span", null, m.figure)),
      h("div", { class: "lk-track", role: "img", "aria-label": m.label }, m.parts.map((p) => h("i", { class: p.kind && "lk-" + p.kind, style: `width:${p.width}%`, title: p.text }, p.width > 9 ? p.text : ""))))),
    h("div", { class: cls("lk-tag", n.status && "lk-" + n.status) }, n.status ? GLYPH[n.status] + " " + n.tag : n.tag || "\u00a0"));
}

const button = (x, send) => h("button", { type: "button", class: x.primary && "lk-primary", disabled: !!x.disabled, "aria-label": x.label || null, "aria-pressed": x.pressed === undefined || x.pressed === null ? null : String(x.pressed), "data-id": x.id, onclick: () => send({ event: "click", id: x.id }) }, x.text);

let serial = 0;
const ids = new Map();
const idOf = (scope, c) => { const k = scope + c.id; if (!ids.has(k)) ids.set(k, `lk-${++serial}`); return ids.get(k); };

// What is ticked, not what the last view said: several boxes may be ticked before the kernel answers.
const chosen = (fieldset, options) => { const boxes = fieldset.querySelectorAll("input"); return options.filter((_, i) => boxes[i].checked).map((o) => o.value); };

function control(c, send) {
  const id = idOf(send.scope, c);
  const set = (value) => send({ event: "set", id: c.id, value });
  if (c.kind === "range")
    return h("div", { class: "lk-field" }, h("label", { for: id }, c.color && h("span", { class: "lk-swatch", style: `background:var(--lk-p-${c.color})` }), c.text),
      h("input", { type: "range", id, "data-id": c.id, "data-control": c.id, min: c.min, max: c.max, step: c.step, value: c.value, disabled: !!c.disabled, "aria-valuetext": c.figure, oninput: (e) => set(Number(e.target.value)) }), h("output", { for: id }, c.figure));
  if (c.kind === "weight")
    return h("div", { class: "lk-field lk-weight" }, h("label", { for: id }, h("input", { type: "checkbox", "data-id": c.id + ".on", "data-control": c.id + ".on", checked: c.on, "aria-label": c.toggle_label, onchange: (e) => send({ event: "set", id: c.id + ".on", value: e.target.checked }) }), h("span", { class: "lk-swatch", style: `background:var(--lk-p-${c.color})` }), h("span", null, humps(c.text))),
      h("input", { type: "range", id, "data-id": c.id, "data-control": c.id, min: c.min, max: c.max, step: 1, value: c.value, disabled: !c.on, "aria-label": c.weight_label, oninput: (e) => set(Number(e.target.value)) }), h("output", { for: id }, c.on ? String(c.value) : "–"));
  if (c.kind === "select")
    return h("div", { class: "lk-field lk-stacked" }, h("label", { for: id }, c.text), h("select", { id, "data-id": c.id, "data-control": c.id, value: c.value, onchange: (e) => set(e.target.value) }, c.options.map((o) => h("option", { value: o.value }, o.text))));
  if (c.kind === "check")
    return h("div", { class: "lk-field lk-stacked" }, h("label", { for: id }, h("input", { type: "checkbox", id, "data-id": c.id, "data-control": c.id, checked: c.value, onchange: (e) => set(e.target.checked) }), c.text));
  if (c.kind === "choice")
    return h("fieldset", null, h("legend", null, c.text), c.options.map((o, i) => h("label", { class: "lk-choice" }, h("input", { type: c.many ? "checkbox" : "radio", name: id, "data-id": `${c.id}.${o.value}`, "data-control": c.id, disabled: !!c.disabled, checked: c.many ? (c.value || []).includes(o.value) : c.value === o.value,
      onchange: (e) => set(c.many ? chosen(e.target.closest("fieldset"), c.options) : o.value) }), h("span", null, o.text))));
  if (c.kind === "code" || c.kind === "text" || c.kind === "number") {
    const tag = c.kind === "code" ? "textarea" : "input";
    return h("div", { class: "lk-field lk-stacked" }, h("label", { for: id }, c.text), h(tag, { id, "data-id": c.id, type: tag === "input" ? (c.kind === "number" ? "number" : "text") : null, step: c.kind === "number" ? "any" : null, rows: c.rows || null, spellcheck: "false", autocomplete: "off", value: c.value,
      oninput: (e) => { e.target._dirty = true; clearTimeout(e.target._timer); const go = () => { e.target._dirty = false; set(e.target.value); }; e.target._timer = setTimeout(go, c.live === false ? 100000000 : 250); },
      onblur: (e) => { if (e.target._dirty) { clearTimeout(e.target._timer); e.target._dirty = false; set(e.target.value); } } }));
  }
  throw new Error("unknown control " + c.kind);
}

const blocks = (items, send) => items.map((b) => (B[b.type] ? B[b.type](b, send) : h("pre", null, JSON.stringify(b))));

// What had the focus may have moved (an item of a list) or be switched off (the last page): the focus goes along.
function refocus(root, id) {
  const to = root.querySelector(`[data-id="${CSS.escape(id)}"]`);
  const near = to && to.disabled ? to.parentElement.querySelector("button:not(:disabled)") : to;
  if (near) near.focus();
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "lk";
  el.appendChild(root);
  // JupyterLab takes single keys for commands on cells (arrows move on, "a" adds one) before they get here. Keys that
  // are meant for a control stay with it; those with Ctrl, Alt or Cmd, and Shift+Enter, are still JupyterLab's.
  const keys = (e) => { if (root.contains(e.target)) e.target.toggleAttribute("data-lm-suppress-shortcuts", !(e.ctrlKey || e.altKey || e.metaKey || (e.shiftKey && e.key === "Enter"))); };
  window.addEventListener("keydown", keys, true);
  // Messages are numbered, and a view says up to which number it answers this client. `latest` waits to be sent,
  // `sent` holds the number of the last message about each control.
  const client = crypto.getRandomValues(new Uint32Array(2)).join("-"), latest = new Map(), sent = new Map();
  let before, dom, waiting = false, number = 0, answered = 0;
  const flush = () => {
    if (waiting || latest.size === 0) return;
    const [key, message] = latest.entries().next().value;
    latest.delete(key);
    waiting = true;
    const mine = ++number;
    sent.set(message.id, mine);
    model.send({ ...message, client, number: mine });
    setTimeout(() => { if (waiting && mine === number) { waiting = false; flush(); } }, 2000);
  };
  const send = (message) => { latest.delete(message.id); latest.set(message.event === "click" ? message.id + "#" + Math.random() : message.id, message); flush(); };
  send.scope = model.model_id || String(++serial);
  // Standalone anywidget hosts may have no comm id; the serial keeps ids unique.
  const draw = () => {
    const view = model.get("view");
    root.setAttribute("lang", view.lang || "en");
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", view.label || "");
    const after = h("div", null, blocks(view.blocks || [], send));
    if (view.answered && view.answered[0] === client) answered = view.answered[1];
    // What is not answered yet must not jump back: keys are faster than the kernel.
    for (const x of root.querySelectorAll("[data-control]")) x._dirty = latest.has(x.dataset.control) || sent.get(x.dataset.control) > answered;
    const active = root.getRootNode().activeElement, held = root.contains(active) ? active.dataset.id : null;
    dom = patch(root, dom, before, after);
    if (held && (active.dataset.id !== held || active.disabled)) refocus(root, held);
    before = after;
    root.dataset.revision = String(view.revision || 0);
    if (answered >= number) waiting = false;
    flush();
  };
  draw();
  model.on("change:view", draw);
  return () => { window.removeEventListener("keydown", keys, true); model.off("change:view", draw); };
}

export default { render };
