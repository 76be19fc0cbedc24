// One writer and many readers of one text, on any server that speaks the Yjs sync protocol.
// The request is one JSON object on the command line; the answer one on standard output.
// `kind`: append (20 characters), keystroke (one, at the end), random (one, anywhere in a text).
// At most `window` updates are under way, or `perSecond` are sent; `server` is the process whose
// processor time is counted meanwhile.
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const request = JSON.parse(process.argv[2])
const require = createRequire(pathToFileURL(request.modules + '/'))
const Y = require('yjs')
const WebSocket = require('ws')
const encoding = require('lib0/encoding')
const decoding = require('lib0/decoding')

const { url, readers, seconds, window, perSecond, hocuspocus, room, block, kind, server } = request
const written = kind === 'append' ? 'twenty characters ab' : 'x'

const frame = (write, type = 0) => {
  const encoder = encoding.createEncoder()
  if (hocuspocus) encoding.writeVarString(encoder, room)
  encoding.writeVarUint(encoder, type)
  write(encoder)
  return encoding.toUint8Array(encoder)
}
const step1 = frame(e => { encoding.writeVarUint(e, 0); encoding.writeVarUint8Array(e, Uint8Array.of(0)) })
const update = bytes => frame(e => { encoding.writeVarUint(e, 2); encoding.writeVarUint8Array(e, bytes) })

function open (onUpdate) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false })
    socket.binaryType = 'arraybuffer'
    socket.on('error', reject)
    socket.on('close', (code, reason) => reject(new Error(`closed: ${code} ${reason}`)))
    socket.on('open', () => {
      if (hocuspocus) socket.send(frame(e => { encoding.writeVarUint(e, 0); encoding.writeVarString(e, 'token') }, 2))
      socket.send(step1)
    })
    socket.on('message', data => {
      const decoder = decoding.createDecoder(new Uint8Array(data))
      if (hocuspocus) decoding.readVarString(decoder)
      if (decoding.readVarUint(decoder) !== 0) return
      const kind = decoding.readVarUint(decoder)
      if (kind === 0) return
      const bytes = decoding.readVarUint8Array(decoder)
      if (kind === 1) resolve(socket)
      onUpdate(bytes)
    })
  })
}

const doc = new Y.Doc()
let mine = 0
const seen = new Map()
const sentAt = []
const latencies = []
let least = 0
let wake = () => {}

// A reader has seen every update whose last clock it has been told.
const follow = reader => bytes => {
  const upTo = Y.parseUpdateMeta(bytes).to.get(doc.clientID)
  if (upTo === undefined) return
  const before = seen.get(reader)
  const now = Math.max(before, Math.floor((upTo - mine) / written.length))
  if (now <= before) return
  seen.set(reader, now)
  const at = performance.now()
  if (perSecond || window === 1) for (let one = before; one < now; one++) latencies.push(at - sentAt[one])
  if (before === least) {
    least = Math.min(...seen.values())
    wake()
  }
}

const writer = await open(bytes => Y.applyUpdate(doc, bytes, 'server'))
const content = block ? doc.getMap('blocks').get(block).get('content') : doc.getText('text')
const made = []
doc.on('update', (bytes, origin) => { if (origin !== 'server') made.push(update(bytes)) })
const clock = () => Y.getState(doc.store, doc.clientID)
if (kind === 'random') content.insert(0, 'The two of them write in turn. '.repeat(64))
mine = clock()
const before = made.splice(0)
const count = Math.ceil(seconds * (perSecond || (window === 1 ? 5000 : 20000)))
let state = 4711
const below = limit => { state = (state * 48271) % 2147483647; return state % limit }
for (let one = 0; one < count; one++) content.insert(kind === 'random' ? below(content.length) : content.length, written)

for (let reader = 0; reader < readers; reader++) {
  seen.set(reader, 0)
  await open(follow(reader))
}

// Nanoseconds that the server's threads have run.
const ran = () => {
  if (!server) return 0
  const tasks = `/proc/${server}/task`
  return readdirSync(tasks).reduce((sum, task) => sum + Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]), 0)
}

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
for (const one of before) writer.send(one)
await sleep(500)
const ranBefore = ran()
const start = performance.now()
let sent = 0
if (perSecond) {
  while (sent < count) {
    sentAt.push(performance.now())
    writer.send(made[sent++])
    await sleep(Math.max(0, start + sent * 1000 / perSecond - performance.now()))
  }
} else {
  while (sent < count && performance.now() - start < seconds * 1000) {
    while (sent < count && sent - least < window) {
      sentAt.push(performance.now())
      writer.send(made[sent++])
    }
    await new Promise(resolve => { wake = resolve })
  }
}
const giveUp = performance.now() + 20000
while (least < sent && performance.now() < giveUp) {
  await Promise.race([new Promise(resolve => { wake = resolve }), sleep(100)])
}
const cpu = (ran() - ranBefore) / 1000
const took = (performance.now() - start) / 1000
latencies.sort((a, b) => a - b)
process.stdout.write(JSON.stringify({
  sent,
  arrived: least,
  seconds: took,
  cpuMicroseconds: cpu,
  p50: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
  p95: latencies[Math.floor(latencies.length * 0.95)] ?? 0
}))
process.exit(0)
