// What makes the flame graph a tool: search, zoom, the keyboard, the details of a box in the header. Without this script
// the picture is whole, and titles are its tooltips. Texts go in and out as text only, never as markup.
"use strict";
(() => {
    const PAD = 10, ROOM = 6, FEWEST = 4, EDGED = 3, NARROWEST = 0.25, TOOLS = 520;
    const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
    const svg = document.querySelector("svg");
    const all = document.getElementById("boxes");
    const header = document.getElementById("header");
    const details = document.getElementById("details");
    const hint = details.textContent;
    const height = svg.viewBox.baseVal.height;
    let width = svg.viewBox.baseVal.width;

    // Boxes in the order of the file, which is depth first: what was called from a box lies behind it, up to `last`.
    const boxes = [];
    for (const g of all.querySelectorAll("g.b")) {
        const rect = g.querySelector("rect"), lines = g.querySelector("title").textContent.split("\n");
        boxes.push({
            g, rect, text: g.querySelector("text"), name: lines[0], lines, time: g.dataset.t,
            x: +rect.getAttribute("x"), w: +rect.getAttribute("width"), row: +rect.getAttribute("y"),
            index: boxes.length, last: boxes.length, parent: null, hit: false,
        });
    }
    const open = [];
    for (const box of boxes) {
        while (open.length && open[open.length - 1].row >= box.row)
            open.pop();
        box.parent = open.length ? open[open.length - 1] : null;
        for (const around of open)
            around.last = box.index;
        open.push(box);
    }
    const byElement = new Map(boxes.map((box) => [box.g, box]));
    const isIn = (box, other) => box.index >= other.index && box.index <= other.last;

    // ---- labels ----

    const letter = (() => {
        const probe = document.createElementNS(SVG, "text");
        probe.textContent = "0".repeat(100);
        svg.appendChild(probe);
        const wide = probe.getComputedTextLength() / 100;
        probe.remove();
        return wide || 7.25;
    })();

    function label(box, w) {
        const wide = /[\u1000-\uffff]/.test(box.name) ? 2 : 1;
        const room = Math.floor((w - ROOM) / (letter * wide)), name = Array.from(box.name);
        if (name.length + 2 + box.time.length <= room)
            return box.name + "  " + box.time;
        if (name.length <= room)
            return box.name;
        if (room < FEWEST)
            return "";
        const head = Math.floor((room - 1) / 2), tail = room - 1 - head;
        return name.slice(0, head).join("") + "\u2026" + name.slice(name.length - tail).join("");
    }

    // ---- zoom ----

    let zoomed = boxes[0];

    function place(box, x, w) {
        const isSeen = w >= NARROWEST;
        box.g.style.display = isSeen ? "" : "none";
        if (!isSeen)
            return;
        box.rect.setAttribute("x", x.toFixed(2));
        box.rect.setAttribute("width", w.toFixed(2));
        if (w > EDGED)
            box.rect.setAttribute("stroke", "#fff");
        else
            box.rect.removeAttribute("stroke");
        box.text.setAttribute("x", (x + 3).toFixed(2));
        box.text.textContent = label(box, w);
    }

    function layout() {
        const inner = width - 2 * PAD, scale = inner / zoomed.w;
        for (const box of boxes) {
            const isAround = box !== zoomed && isIn(zoomed, box);
            box.g.classList.toggle("up", isAround);
            if (isAround)
                place(box, PAD, inner);
            else if (isIn(box, zoomed))
                place(box, PAD + (box.x - zoomed.x) * scale, box.w * scale);
            else
                box.g.style.display = "none";
        }
        reset.disabled = zoomed === boxes[0];
        count();
    }

    function zoom(box) {
        zoomed = box;
        layout();
        focusOn(box);
    }

    // ---- search ----

    function count() {
        let n = 0, w = 0, behind = -1;
        for (const box of boxes) {
            if (!box.hit || !isIn(box, zoomed))
                continue;
            n++;
            if (box.index > behind) { // what lies in another hit is in its time
                w += box.w;
                behind = box.last;
            }
        }
        const share = zoomed.w ? 100 * w / zoomed.w : 0;
        found.textContent = find.value ? `${n} ${n === 1 ? "box" : "boxes"}, ${share.toFixed(1)} % of what is shown` : "";
    }

    function search() {
        const word = find.value.toLowerCase();
        for (const box of boxes) {
            box.hit = word !== "" && box.name.toLowerCase().includes(word);
            box.g.classList.toggle("hit", box.hit);
        }
        svg.classList.toggle("miss", word !== "");
        count();
    }

    // ---- details and the keyboard: one box at a time can be reached by tab, arrows lead to its neighbours ----

    let current = boxes[0];

    function show(box) {
        details.textContent = box ? box.lines.join(", ") : hint;
    }

    function focusOn(box) {
        current.g.removeAttribute("tabindex");
        current = box;
        box.g.setAttribute("tabindex", "0");
        box.g.focus({ preventScroll: true });
        show(box);
    }

    function isShown(box) {
        return box !== undefined && box.g.style.display !== "none";
    }

    // Siblings are met before cousins: the nearest shown box of the same row, in the direction of `step`.
    function beside(box, step) {
        for (let i = box.index + step; i >= 0 && i < boxes.length; i += step)
            if (boxes[i].row === box.row && isShown(boxes[i]))
                return boxes[i];
        return box;
    }

    function below(box) {
        const next = boxes[box.index + 1];
        return next !== undefined && next.parent === box && isShown(next) ? next : box;
    }

    const moves = {
        ArrowUp: (box) => box.parent || box,
        ArrowDown: below,
        ArrowLeft: (box) => beside(box, -1),
        ArrowRight: (box) => beside(box, 1),
        Home: () => boxes[0],
    };

    function onBoxKey(event) {
        if (event.key in moves)
            focusOn(moves[event.key](current));
        else if (event.key === "Enter" || event.key === " ")
            zoom(current);
        else
            return;
        event.preventDefault();
        current.g.scrollIntoView({ block: "nearest" });
    }

    // ---- tools: made here, because without a script they would do nothing ----

    function element(name, attributes, parent) {
        const made = document.createElementNS(HTML, name);
        for (const key in attributes)
            made.setAttribute(key, attributes[key]);
        parent.appendChild(made);
        return made;
    }

    const frame = document.createElementNS(SVG, "foreignObject");
    frame.setAttribute("y", "8");
    frame.setAttribute("width", TOOLS);
    frame.setAttribute("height", "30");
    header.appendChild(frame);
    const tools = element("div", { id: "tools" }, frame);
    const found = element("span", { role: "status" }, tools);
    const find = element("input", {
        type: "search", placeholder: "Search (Ctrl-F)", "aria-label": "Search for names",
    }, tools);
    const reset = element("button", { type: "button" }, tools);
    reset.textContent = "Reset zoom";

    function fit() {
        const bar = height > window.innerHeight ? 16 : 0;
        width = Math.max(700, window.innerWidth - bar);
        svg.setAttribute("width", width);
        svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        frame.setAttribute("x", width - TOOLS - PAD);
        layout();
    }

    function onKey(event) {
        if ((event.ctrlKey || event.metaKey) && event.key === "f" && document.activeElement !== find) {
            find.focus();
            find.select();
            event.preventDefault();
        } else if (event.key === "Escape") {
            if (find.value) {
                find.value = "";
                search();
            } else {
                zoom(boxes[0]);
            }
        }
    }

    all.addEventListener("keydown", onBoxKey);
    all.addEventListener("click", (event) => zoom(byElement.get(event.target.closest("g.b"))));
    all.addEventListener("mouseover", (event) => show(byElement.get(event.target.closest("g.b"))));
    all.addEventListener("mouseleave", () => show(document.activeElement === current.g ? current : null));
    find.addEventListener("input", search);
    reset.addEventListener("click", () => zoom(boxes[0]));
    document.addEventListener("keydown", onKey);
    window.addEventListener("resize", fit);
    window.addEventListener("scroll", () => header.setAttribute("transform", `translate(0 ${window.scrollY})`));
    window.addEventListener("beforeprint", () => header.removeAttribute("transform"));
    for (const box of boxes)
        box.g.setAttribute("role", "button");
    boxes[0].g.setAttribute("tabindex", "0");
    fit();
})();
