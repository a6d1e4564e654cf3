// What somebody changes while the page still loads is kept, too: app.js reports it again to htmx.
"use strict";

const early = new Set();
const noteEarly = (event) => early.add(event.target);
document.addEventListener("change", noteEarly);
