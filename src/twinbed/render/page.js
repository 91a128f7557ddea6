"use strict";
(function () {
  // The numbers of a mark, where the pointer is.
  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", function (event) {
    const mark = event.target.closest && event.target.closest("svg [data-said]");
    const said = mark && !mark.querySelector("[data-said]") ? mark.dataset.said : "";
    tip.hidden = !said;
    if (!said) return;
    tip.textContent = said;
    const left = Math.min(event.pageX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = event.pageY + 16 + "px";
  });

  // Tables that can be sorted by a column: numbers as numbers.
  document.querySelectorAll("table.sortable thead th").forEach(function (head) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    button.addEventListener("click", function () {
      const descending = head.getAttribute("aria-sort") === "ascending";
      head.parentElement.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const key = function (row) { const cell = row.cells[head.cellIndex]; return cell.dataset.value || cell.textContent; };
      const order = function (a, b) {
        const x = key(a), y = key(b), numeric = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (numeric ? x - y : x.localeCompare(y)) * (descending ? -1 : 1);
      };
      Array.from(body.rows).sort(order).forEach(function (row) { body.append(row); });
    });
  });

  // Runs: only those that failed.
  const only = document.getElementById("only-failed");
  if (only) only.addEventListener("change", function () {
    document.querySelectorAll("#runs-table tbody tr").forEach(function (row) {
      row.hidden = only.checked && !row.classList.contains("failed");
    });
  });

  // Steps of a request: the link of a step's band unfolds it, and packets of unfolded steps stand out in the ladders above.
  document.querySelectorAll(".plots.ladder").forEach(function (ladders) {
    const steps = new Map();
    ladders.querySelectorAll("svg a").forEach(function (link) {
      const step = document.getElementById(link.getAttribute("href").slice(1));
      if (step) steps.set(step, link.querySelector("[data-steps]").dataset.steps);
    });
    const mark = function () {
      const open = Array.from(steps.keys()).filter(function (step) { return step.open; });
      const names = open.map(function (step) { return steps.get(step); });
      ladders.querySelectorAll("[data-steps]").forEach(function (drawn) {
        const own = drawn.dataset.steps.split(" ");
        drawn.classList.toggle("picked", own.some(function (step) { return names.includes(step); }));
      });
    };
    steps.forEach(function (_, step) { step.addEventListener("toggle", mark); });
    ladders.addEventListener("click", function (event) {
      const link = event.target.closest && event.target.closest("svg a");
      const step = link && document.getElementById(link.getAttribute("href").slice(1));
      if (step) step.open = true;
    });
  });

  // A link into a folded section opens it.
  const unfold = function () {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const inner = target.querySelector(":scope > details");
    if (inner) inner.open = true;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", unfold);
  unfold();

  // What is folded away on a screen belongs on paper.
  let closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.from(document.querySelectorAll("details.print:not([open])"));
    closed.forEach(function (each) { each.open = true; });
  });
  window.addEventListener("afterprint", function () { closed.forEach(function (each) { each.open = false; }); });
})();
