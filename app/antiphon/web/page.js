// What textual-serve's terminal takes for its WebSocket: it shows the invitation, says what has
// become of the connection, and connects again when it is lost.
"use strict";
const Socket = window.WebSocket;
const [notice, words, again] = ["notice", "words", "again"].map((id) => document.getElementById(id));

function say(text, isOver) {
  words.textContent = text;
  notice.hidden = !text;
  again.hidden = !isOver;
}

// The token is kept for this window, out of its address; the secret, by which the kernel knows the
// guest again, for this browser.
if (location.hash.length > 1) {
  sessionStorage.setItem("token", location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("token");
if (!localStorage.getItem("secret")) {
  localStorage.setItem("secret", crypto.getRandomValues(new Uint32Array(8)).join("-"));
}
addEventListener("hashchange", () => location.reload());
again.onclick = () => location.reload();

window.WebSocket = class extends EventTarget {
  constructor(url) {
    super();
    this.url = new URL(url, location.href.replace(/^http/, "ws"));
    this.join();
    setInterval(() => this.check(), 5000);
  }

  join() {
    const socket = (this.socket = new Socket(this.url));
    this.asked = this.heard = 0;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      socket.send(JSON.stringify(["join", token, localStorage.getItem("secret")]));
      this.dispatchEvent(new MessageEvent("message", { data: new TextEncoder().encode("\x1bc").buffer }));
      this.dispatchEvent(new Event("open")); // upon which the terminal says its size
    };
    socket.onmessage = (event) => this.take(event.data);
    socket.onclose = (event) => (event.code === 1000 ? this.end("You have left.") : this.lose());
  }

  take(data) {
    this.heard = Date.now();
    if (typeof data === "string") {
      const [kind, text] = JSON.parse(data);
      if (kind === "over") this.end(text);
      return;
    }
    if (!notice.hidden) document.querySelector("textarea").focus();
    say("");
    const title = /\x1b\]2;([^\x07\x1b]*)/.exec(new TextDecoder().decode(data));
    if (title) document.title = title[1];
    this.dispatchEvent(new MessageEvent("message", { data }));
  }

  check() {
    if (!this.socket) return;
    if (this.asked > this.heard) this.lose();
    else this.send('["ping", ""]');
    this.asked = Date.now();
  }

  lose() {
    this.end("The connection is gone. Trying again …");
    again.hidden = true;
    setTimeout(() => this.join(), 2000);
  }

  end(text) {
    if (!this.socket) return;
    this.socket.onclose = this.socket.onmessage = null;
    this.socket.close();
    this.socket = null;
    say(text, true);
  }

  // A long paste goes in pieces. What is typed while the connection is gone is not kept.
  send(message) {
    if (this.socket?.readyState !== Socket.OPEN) return;
    const [kind, value] = JSON.parse(message);
    if (kind !== "stdin") this.socket.send(message);
    else for (const piece of value.match(/.{1,50000}/gsu) ?? []) this.socket.send(JSON.stringify([kind, piece]));
  }
};

// Ctrl+V is the browser's: it pastes.
addEventListener("keydown", (event) => {
  if (event.ctrlKey && !event.shiftKey && !event.altKey && event.key === "v") event.stopImmediatePropagation();
}, true);

// The terminal measures its font when it starts.
if (!token) say("This page takes a link to come in: ask for one.");
else document.fonts.load("16px 'Roboto Mono'").then(() => {
  const script = document.createElement("script");
  script.src = "textual.js";
  script.onload = () => window.onload();
  document.head.append(script);
});
