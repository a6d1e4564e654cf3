// Search without a server. A browser refuses `new Worker` on a page opened from a folder, so there
// the search script runs in a hidden frame of the page instead. On a server nothing changes.
// The theme looks for a script of this file name; without one it loads its own from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];  // messages that arrive before the script is loaded
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.addEventListener("load", () => this.load(new URL(url, location)), { once: true });
      document.body.append(this.frame);
    }

    load(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (sent) => {
        const data = structuredClone(sent);  // as a worker does: neither side changes the other's
        setTimeout(() => this.onmessage?.({ data }));
      };
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
      script.addEventListener("error", (event) => this.onerror?.(event));
      inside.document.body.append(script);
    }

    postMessage(sent) {
      const data = structuredClone(sent);
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.frame.contentWindow?.onmessage?.({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
