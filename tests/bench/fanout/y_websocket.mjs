// @y/websocket-server on any free port, which it says.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(process.argv[2] + '/'))
const { WebSocketServer } = require('ws')
const { setupWSConnection } = await import(pathToFileURL(require.resolve('@y/websocket-server/utils').replace('dist/utils.cjs', 'src/utils.js')))
const server = createServer()
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on('connection', setupWSConnection)
server.listen(0, '127.0.0.1', () => process.stdout.write(JSON.stringify({ port: server.address().port }) + '\n'))
