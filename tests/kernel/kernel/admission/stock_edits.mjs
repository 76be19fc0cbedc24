// A stock Yjs document that is edited: node stock_edits.mjs MODULES, then on standard input
// {"state", "block", "client", "edits"}; prints what it would send, in base64.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { readFileSync } from 'node:fs'

const require = createRequire(pathToFileURL(process.argv[2] + '/'))
const Y = await import(pathToFileURL(require.resolve('yjs')))

const { state, block, client, edits } = JSON.parse(readFileSync(0, 'utf8'))
const doc = new Y.Doc()
doc.clientID = client
Y.applyUpdate(doc, Buffer.from(state, 'base64'))
const before = Y.encodeStateVector(doc)
const content = doc.getMap('blocks').get(block).get('content')
const log = content.get('log')
const fields = content.get('state')
const few = fields.get('few')

const all = {
  push: () => log.push(['pushed']),
  insertAtTheEnd: () => log.insert(log.length, ['inserted']),
  pushAndTakeBack: () => {
    log.push(['not said'])
    log.delete(log.length - 1, 1)
    log.push(['said'])
  },
  overwrite: () => [1, 2, 3].forEach(value => fields.set('must', value)),
  overwriteAtOnce: () => doc.transact(() => [1, 2, 3].forEach(value => fields.set('must', value))),
  count: () => [1, 2].forEach(sum => fields.get('count').set(String(client), String(sum))),
  removeOptional: () => {
    fields.set('flag', true)
    fields.delete('flag')
  },
  fill: () => few.push([7]),
  replaceList: () => doc.transact(() => {
    few.delete(0, few.length)
    few.insert(0, [7, 8, 9])
  }),
  undoTyping: () => {
    const undo = new Y.UndoManager(fields.get('title'))
    fields.get('title').insert(0, 'typed 😀')
    undo.undo()
    undo.redo()
  },
  bold: () => {
    fields.get('title').insert(0, 'bold', { bold: true, link: { href: 'x' } })
  },
  insertAtTheFront: () => log.insert(0, ['forged']),
  insertBeforeTheLast: () => log.insert(1, ['forged']),
  deleteEntry: () => log.delete(0, 1),
  overfill: () => few.push([7, 8]),
  infinity: () => fields.set('must', Infinity),
  notANumber: () => few.push([NaN]),
  undefinedInside: () => log.push([{ a: [undefined] }]),
  bigInt: () => log.push([{ a: 2n ** 60n }]),
  bytes: () => log.push([new Uint8Array([1, 2])]),
  bytesInside: () => log.push([{ a: new Uint8Array([1, 2]) }]),
  empty: () => fields.delete('must'),
  setToNull: () => fields.set('flag', null),
  embed: () => fields.get('title').insertEmbed(0, { image: 'x' }),
  othersSum: () => fields.get('count').set('1', '9'),
  otherType: () => fields.set('few', new Y.Array()),
  unknown: () => fields.set('unknown', 1),
}
for (const edit of edits) all[edit]()
process.stdout.write(Buffer.from(Y.encodeStateAsUpdate(doc, before)).toString('base64'))
