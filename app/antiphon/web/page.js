// Stands for the WebSocket of textual-serve's terminal: it shows the invitation, says what has
// become of the connection, and connects again when it is lost.
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

window.WebSocket = class extends EventTarget {
  constructor(url) {
    super();
    this.url = new URL(url.split("?")[0], location.href.replace(/^http/, "ws"));
    this.join();
    setInterval(() => this.check(), 5000);
  }

  join() {
    const socket = (this.socket = new Socket(this.url));
    this.asked = this.heard = 0;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      socket.send(JSON.stringify(["join", token, secret]));
      this.show(new TextEncoder().encode("\x1bc").buffer); // of an earlier session nothing is left
      this.dispatchEvent(new Event("open")); // upon which the terminal says its size
    };
    socket.onmessage = ({ data }) => {
      this.heard = Date.now();
      if (typeof data !== "string") this.take(data);
      else if (data.startsWith('["over"')) this.end(JSON.parse(data)[1]);
    };
    socket.onclose = ({ code }) => (code === 1000 ? this.end("You have left.") : this.lose());
  }

  take(data) {
    if (!notice.hidden) document.querySelector("textarea").focus();
    say("");
    document.title = /\x1b\]2;([^\x07\x1b]*)/.exec(new TextDecoder().decode(data))?.[1] ?? document.title;
    this.show(data);
  }

  show(data) {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }

  check() {
    if (this.socket && this.asked > this.heard) this.lose();
    else this.send('["ping", ""]');
    this.asked = Date.now();
  }

  lose() {
    this.end("The connection is gone. Trying again …");
    again.hidden = true;
    setTimeout(() => this.join(), 2000);
  }

  end(text) {
    this.socket.onopen = this.socket.onclose = this.socket.onmessage = null;
    this.socket.close();
    this.socket = null;
    say(text, true);
  }

  // A long paste goes in pieces. What is typed while the connection is gone is not kept.
  send(message) {
    if (this.socket?.readyState !== Socket.OPEN) return;
    const [kind, value] = JSON.parse(message);
    const pieces = kind === "stdin" ? value.match(/.{1,50000}/gsu) : [value];
    for (const piece of pieces ?? []) this.socket.send(JSON.stringify([kind, piece]));
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
