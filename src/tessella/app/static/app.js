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

document.documentElement.classList.add("scripted");
document.querySelectorAll("textarea[data-numbered]").forEach(number);

// A slider and its number are one value; moving the slider asks for an estimate, leaving it keeps it.
document.querySelectorAll("input[data-slides]").forEach((slider) => {
  const field = document.getElementById(slider.dataset.slides);
  slider.addEventListener("input", () => { field.value = slider.value; });
  field.addEventListener("input", () => { slider.value = field.value; });
});

// A copy of what is shown, for the clipboard.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const shown = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(shown.textContent).then(
    () => { button.textContent = "Copied"; },
    () => { getSelection().selectAllChildren(shown); button.textContent = "Selected"; },
  );
});

// A map that somebody points at or walks through by keyboard is not taken away; the next look is.
document.addEventListener("htmx:beforeRequest", (event) => {
  const map = event.detail.elt;
  if (map.id === "map" && map.matches(":focus-within, :has(a:hover)")) event.preventDefault();
});
// Ctrl-Z outside of a field takes back the last change of the plan.
document.addEventListener("keydown", (event) => {
  const wanted = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
  if (!wanted || event.target.closest("input:not([type=range], [type=checkbox]), textarea")) return;
  const button = document.querySelector(`#undo button[value=${event.shiftKey ? "redo" : "undo"}]`);
  if (button && !button.disabled) { event.preventDefault(); button.click(); }
});

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
  if (!place) return;
  const said = "The app does not answer. Is it still running?";
  if (!place.matches(".progress, #map")) {
    place.textContent = said;
  } else if (!document.getElementById("unanswered")) {  // what is shown stays
    place.insertAdjacentHTML("beforebegin", `<p id="unanswered" class="bad" role="alert">${said}</p>`);
  }
});

// htmx listens from the same event on, and was there before this file (see early.js).
document.addEventListener("DOMContentLoaded", () => {
  document.removeEventListener("change", noteEarly);
  early.forEach((field) => field.dispatchEvent(new Event("change", { bubbles: true })));
});
