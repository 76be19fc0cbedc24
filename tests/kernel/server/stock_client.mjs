// A stock Yjs client: commands come as JSON lines on standard input, what it sees goes out likewise.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [modules, serverUrl, room, token, block, as] = process.argv.slice(2)
const require = createRequire(pathToFileURL(modules + '/'))
const load = name => import(pathToFileURL(require.resolve(name)))
const Y = await load('yjs')
const { WebsocketProvider } = await load('y-websocket')
const WebSocket = (await load('ws')).default

const say = message => process.stdout.write(JSON.stringify(message) + '\n')
const doc = new Y.Doc()
const provider = new WebsocketProvider(serverUrl, room, doc, {
  params: as ? { token, as } : { token }, WebSocketPolyfill: WebSocket, disableBc: true
})
const blocks = doc.getMap('blocks')
const content = () => blocks.get(block)?.get('content')
let undoManager

provider.on('sync', synced => {
  undoManager ??= new Y.UndoManager(content(), { captureTimeout: 0 })
  say({ synced, text: content()?.toString() })
})
provider.on('status', ({ status }) => say({ status }))
provider.on('connection-close', event => say({ closed: event?.code ?? null, reason: event?.reason }))
doc.on('update', () => say({ text: content()?.toString() }))
provider.awareness.on('change', () => say({
  people: [...provider.awareness.getStates()]
    .filter(([client]) => client !== doc.clientID).map(([, state]) => state)
}))

createInterface({ input: process.stdin }).on('line', line => {
  const command = JSON.parse(line)
  if (command.insert) content().insert(command.insert[0], command.insert[1])
  if (command.delete) content().delete(command.delete[0], command.delete[1])
  if (command.undo) undoManager.undo()
  if (command.redo) undoManager.redo()
  if (command.field) blocks.get(block).set(command.field[0], command.field[1])
  if (command.draft) {
    const draft = new Y.Map(Object.entries(command.draft.fields))
    draft.set('content', new Y.Text('x'))
    doc.transact(() => blocks.set(command.draft.id, draft))
  }
  if (command.presence) {
    for (const [key, value] of Object.entries(command.presence)) {
      provider.awareness.setLocalStateField(key, value)
    }
  }
  if (command.leave) { provider.destroy(); setTimeout(() => process.exit(0), 50) }
})
