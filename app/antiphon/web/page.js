// Stands for the WebSocket of textual-serve's terminal: it shows the invitation, says what has
// become of the connection, and comes back when it is lost.
"use strict";
const Socket = window.WebSocket;
const [notice, words, again] = ["notice", "words", "again"].map((id) => document.getElementById(id));
again.onclick = window.onhashchange = () => location.reload();

// The token is kept for this window, out of its address; the secret, by which the kernel knows the
// guest again, for this browser.
if (location.hash.length > 1) {
  sessionStorage.setItem("token", location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("token");
const secret = localStorage.getItem("secret") ?? crypto.getRandomValues(new Uint32Array(8)).join("-");
localStorage.setItem("secret", secret);

function say(text, isOver) {
  words.textContent = text;
  notice.hidden = !text;
  again.hidden = !isOver;
}

window.WebSocket = class extends Socket {
  constructor(url) {
    super(new URL(url.split("?")[0], location.href.replace(/^http/, "ws")));
    this.heard = true;
    this.onopen = () => super.send(JSON.stringify(["join", token, secret])); // before its size
    this.onmessage = ({ data }) => this.take(data);
    this.onclose = ({ code }) => (code === 1000 ? say("You have left.", true) : this.lose());
    this.timer = setInterval(() => this.check(), 5000);
  }

  take(data) {
    this.heard = true;
    if (typeof data !== "string") {
      if (!notice.hidden) document.querySelector("textarea").focus();
      say("");
    } else if (data.startsWith('["over"')) {
      this.end();
      say(JSON.parse(data)[1], true);
    }
  }

  check() {
    if (!this.heard) return this.lose();
    this.heard = false;
    this.send('["ping", ""]');
  }

  // The page is loaded anew, with its terminal, as soon as it can be.
  lose() {
    this.end();
    say("The connection is gone. Trying again …");
    const load = () => fetch("page.js", { signal: AbortSignal.timeout(4000) });
    setInterval(() => load().then(({ ok }) => ok && location.reload(), () => {}), 2000);
  }

  end() {
    clearInterval(this.timer);
    this.onclose = this.onmessage = null;
    this.close();
  }

  // A long paste goes in pieces. What is typed while the connection is gone is not kept.
  send(message) {
    if (this.readyState !== Socket.OPEN) return;
    const [kind, value] = JSON.parse(message);
    const pieces = kind === "stdin" ? value.match(/.{1,50000}/gsu) : [value];
    for (const piece of pieces ?? []) super.send(JSON.stringify([kind, piece]));
  }
};

// Ctrl+V is the browser's: it pastes.
function leave(event) {
  if (event.ctrlKey && !event.shiftKey && event.key === "v") event.stopImmediatePropagation();
}
addEventListener("keydown", leave, true);

// The terminal measures its font when it starts, which it does when the window has been loaded.
async function start() {
  await document.fonts.load("16px 'Roboto Mono'");
  const script = document.createElement("script");
  script.src = "textual.js";
  script.onload = () => window.onload();
  document.head.append(script);
}
if (token) addEventListener("load", start);
else say("This page takes a link to come in: ask for one.");
