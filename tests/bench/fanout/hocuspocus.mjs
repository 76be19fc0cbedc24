// A hocuspocus server on any free port, which it says; with its SQLite extension if a file is named.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [, , modules, database] = process.argv
const require = createRequire(pathToFileURL(modules + '/'))
const { Server } = require('@hocuspocus/server')
const extensions = []
if (database) {
  const { SQLite } = require('@hocuspocus/extension-sqlite')
  extensions.push(new SQLite({ database }))
}
const server = new Server({ port: 0, address: '127.0.0.1', quiet: true, stopOnSignals: false, extensions })
await server.listen()
process.stdout.write(JSON.stringify({ port: server.address.port }) + '\n')
