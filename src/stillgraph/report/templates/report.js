"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const operations = all(".op[data-l]");
  const lines = all(".ln");
  const ofLine = new Map(); // by the id of a line, its operations
  for (const operation of operations)
    for (const id of operation.dataset.l.split(" ").filter(Boolean))
      (ofLine.get(id) ?? ofLine.set(id, []).get(id)).push(operation);
  const linesOf = (operation) => operation.dataset.l.split(" ").map(one).filter(Boolean);

  // ---- what is pointed at
  let lit = [];
  const light = (elements, kind) => elements.forEach((each) => { each.classList.add(kind); lit.push([each, kind]); });
  const dark = () => { lit.forEach(([each, kind]) => each.classList.remove(kind)); lit = []; };
  const show = (element) => {
    dark();
    if (!element) return;
    light([element], "hi");
    if (element.classList.contains("ln")) return light(ofLine.get(element.id) ?? [], "hi");
    const [own, ...callers] = linesOf(element);
    if (own) light([own], "hi");
    light(callers, "hi2");
    for (const link of all(".v", element)) {
      const source = document.querySelector(link.getAttribute("href"))?.closest(".op");
      if (source && source !== element) light([source], "hi2");
    }
  };

  // ---- what is chosen: a list one can go through
  let hits = [], at = -1, picked = null;
  const found = one("found");
  const reveal = (element) => {
    for (let each = element.parentElement?.closest("details"); each; each = each.parentElement?.closest("details"))
      each.open = true;
    const pane = element.closest(".pane");
    if (!pane || pane.scrollHeight <= pane.clientHeight + 1 || getComputedStyle(pane).overflowY !== "auto") {
      const { top, bottom } = element.getBoundingClientRect();
      if (top < 130 || bottom > innerHeight) element.scrollIntoView({ block: "center", inline: "nearest" });
      return;
    }
    const frame = pane.getBoundingClientRect(); // only the pane moves, for the other one is being read
    const top = Math.max(frame.top, 90) + 44, bottom = Math.min(frame.bottom, innerHeight);
    const { top: begin, bottom: end } = element.getBoundingClientRect();
    if (begin < top || end > bottom) pane.scrollTop += (begin + end) / 2 - (top + bottom) / 2;
  };
  const go = (step) => {
    if (!hits.length) return;
    at = (at + step + hits.length) % hits.length;
    picked?.classList.remove("picked");
    picked = hits[at];
    picked.classList.add("picked");
    reveal(picked);
    found.textContent = `${at + 1} of ${hits.length}`;
  };
  const choose = (element) => {
    picked?.classList.remove("picked");
    picked = null;
    const related = element.classList.contains("ln") ? ofLine.get(element.id) ?? [] : linesOf(element).slice(0, 1);
    hits = related;
    at = -1;
    show(element);
    go(1);
    show(element);
  };
  const target = (event) => event.target.closest?.(".op[data-l], .ln[tabindex]");
  let chosen = null;
  document.addEventListener("mouseover", (event) => { if (!chosen) show(target(event)); });
  document.addEventListener("focusin", (event) => { if (!chosen && target(event)) show(target(event)); });
  document.addEventListener("click", (event) => {
    const element = target(event);
    if (!element) {
      if (event.target.closest("main") && !event.target.closest("summary, button, a")) { chosen = null; dark(); }
      return;
    }
    if (event.target.closest("a.v")) return;
    if (String(getSelection())) return;
    event.preventDefault();
    chosen = element;
    choose(element);
  });

  // ---- links to what stands in a fold
  const follow = () => {
    const element = location.hash.length > 1 && one(decodeURIComponent(location.hash.slice(1)));
    if (element && element.closest(".pane") !== element) reveal(element);
  };
  addEventListener("hashchange", follow);

  // ---- search
  const box = one("q");
  const heads = all(".function > summary, .fold > summary");
  const texts = new Map([...heads, ...lines, ...operations].map((each) => [each, each.textContent.toLowerCase()]));
  const clear = () => {
    all(".hit").forEach((each) => each.classList.remove("hit"));
    all(".has").forEach((each) => each.classList.remove("has"));
    picked?.classList.remove("picked");
    picked = null; hits = []; at = -1; found.textContent = "";
  };
  const search = (matches) => {
    clear();
    document.body.classList.toggle("searching", Boolean(matches));
    if (!matches) return;
    hits = [...texts.keys()].filter(matches);
    hits.sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    for (const each of hits) {
      each.classList.add("hit");
      for (let fold = each.closest(".function, .fold"); fold; fold = fold.parentElement.closest(".fold")) fold.classList.add("has");
    }
    found.textContent = hits.length ? `${hits.length} found` : "none";
  };
  const marks = all(".mark[data-mark]");
  const press = (mark) => marks.forEach((each) => each.setAttribute("aria-pressed", String(each === mark)));
  let waiting = 0;
  const searchText = () => {
    const text = box.value.trim().toLowerCase();
    press(null);
    search(text ? (each) => texts.get(each).includes(text) : null);
  };
  box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(searchText, 90); });
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  marks.forEach((mark) => mark.addEventListener("click", () => {
    box.value = "";
    if (mark.getAttribute("aria-pressed") === "true") { press(null); search(null); return; }
    press(mark);
    search((each) => each.classList.contains("ln") && each.classList.contains(mark.dataset.mark));
    go(1);
  }));
  document.addEventListener("keydown", (event) => {
    const typing = document.activeElement === box;
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); box.select(); }
    else if (event.key === "Escape") { box.value = ""; press(null); search(null); chosen = null; dark(); box.blur(); }
    else if (event.key === "Enter" && typing) {
      event.preventDefault();
      if (waiting) { clearTimeout(waiting); waiting = 0; if (at < 0) searchText(); }
      go(event.shiftKey ? -1 : 1);
    }
    else if (event.key === "Enter" && document.activeElement?.matches(".op[data-l], .ln[tabindex]")) {
      chosen = document.activeElement;
      choose(chosen);
    }
  });

  // ---- folding
  for (const [name, open] of [["fold", false], ["unfold", true]])
    all(`[data-${name}]`).forEach((button) => button.addEventListener("click", () => {
      for (const each of all("details", document.querySelector(button.dataset[name])))
        if (!each.matches(".top, .lifted")) each.open = open;
    }));
  all(".tools, .search").forEach((each) => { each.hidden = false; });
  follow();
})();
