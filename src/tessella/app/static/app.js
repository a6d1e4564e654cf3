// Numbers beside the lines of a text, and a way from a mistake to its line. All else works without.
"use strict";

function number(area) {
  const gutter = document.createElement("pre");
  gutter.className = "gutter";
  gutter.setAttribute("aria-hidden", "true");
  const frame = document.createElement("div");
  frame.className = "numbered";
  area.replaceWith(frame);
  frame.append(gutter, area);
  area.wrap = "off";
  const draw = () => {
    const count = area.value.split("\n").length;
    gutter.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n");
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", draw);
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
  draw();
}

function go(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] || "").length);
  const height = area.scrollHeight / lines.length;
  area.scrollTop = Math.max(0, (line - 4) * height);
}

document.querySelectorAll("textarea[data-numbered]").forEach(number);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (!link) return;
  const area = document.getElementById(link.dataset.target);
  if (!area) return;
  event.preventDefault();
  area.scrollIntoView({ block: "center" });
  go(area, Number(link.dataset.line));
});
// What is checked by a form's own rules is also checked before a script sends it.
document.addEventListener("htmx:responseError", (event) => {
  const place = event.detail.target;
  if (place) place.textContent = event.detail.xhr.responseText || "The app does not answer.";
});
document.addEventListener("htmx:sendError", (event) => {
  const place = event.detail.target;
  if (place && !place.matches(".progress")) place.textContent = "The app does not answer. Is it still running?";
});
