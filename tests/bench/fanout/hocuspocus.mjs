// A hocuspocus server on any free port, which it says.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(pathToFileURL(process.argv[2] + '/'))
const { Server } = require('@hocuspocus/server')
const server = new Server({ port: 0, address: '127.0.0.1', quiet: true, stopOnSignals: false })
await server.listen()
process.stdout.write(JSON.stringify({ port: server.address.port }) + '\n')
