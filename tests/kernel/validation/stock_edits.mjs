// A stock Yjs document that is edited: node stock_edits.mjs MODULES, then on standard input
// {"state", "block", "client", "edits"}; prints by edit what it would send, in base64. Each edit is
// made in a document of its own, by the next client id.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { readFileSync } from 'node:fs'

const require = createRequire(pathToFileURL(process.argv[2] + '/'))
const Y = await import(pathToFileURL(require.resolve('yjs')))

const { state, block, client, edits } = JSON.parse(readFileSync(0, 'utf8'))

const inList = (name, list) => ({
  [`insert into ${name}`]: content => list(content).insert(0, [7]),
  [`append to ${name}`]: content => list(content).push([7]),
  [`delete from ${name}`]: content => list(content).delete(0, 1),
  [`replace in ${name}`]: content => { list(content).delete(0, 1); list(content).insert(0, [7]) },
  [`move in ${name}`]: content => { list(content).delete(0, 1); list(content).push([1]) },
  [`append to ${name} and take back`]: content => {
    list(content).push([7])
    list(content).delete(list(content).length - 1, 1)
  }
})
const inMap = (name, map, key) => ({
  [`add to ${name}`]: content => map(content).set('added', '7'),
  [`overwrite in ${name}`]: content => map(content).set(key(map(content)), '7'),
  [`delete from ${name}`]: content => map(content).delete(key(map(content))),
  [`overwrite and delete in ${name}`]: content => {
    map(content).set(key(map(content)), '7')
    map(content).delete(key(map(content)))
  }
})
const container = (name, parent, key, another) => ({
  [`overwrite ${name}`]: content => parent(content).set(key, another()),
  [`overwrite ${name} by a value`]: content => parent(content).set(key, 7),
  [`delete ${name}`]: content => parent(content).delete(key)
})
const fields = content => content.get('state')
const sections = content => content

const all = {
  ...inList('list', content => content.get('things')),
  ...inList('list field', content => fields(content).get('few')),
  ...inList('log', content => content.get('log')),
  ...inMap('map', fields, () => 'must'),
  ...inMap('counter', content => fields(content).get('count'), map => [...map.keys()][0]),
  ...container('list field', fields, 'few', () => new Y.Array()),
  ...container('counter', fields, 'count', () => new Y.Map()),
  ...container('text field', fields, 'title', () => new Y.Text('another')),
  ...container('list', sections, 'things', () => new Y.Array()),
  ...container('log', sections, 'log', () => new Y.Array()),
  ...container('map', sections, 'state', () => new Y.Map()),
  ...container('text section', sections, 'notes', () => new Y.Text('another')),
  'add to composite': content => content.set('more', new Y.Text()),
  'shared type in list': content => content.get('things').push([new Y.Map()]),
  'attribute of text': content => fields(content).get('title').setAttribute('a', 'b'),
  'text and list': content => {
    fields(content).get('title').insert(0, 'typed')
    content.get('things').push([7])
  },
  'type': content => fields(content).get('title').insert(0, 'typed 😀'),
  'type in a section': content => content.get('notes').insert(0, 'typed'),
  'delete text': content => content.get('notes').delete(0, 1),
  'undo typing': content => {
    const title = fields(content).get('title')
    const undo = new Y.UndoManager(title)
    title.insert(0, 'undone')
    undo.undo()
    undo.redo()
    undo.undo()
  },
  'bold': content => {
    fields(content).get('title').insert(0, 'bold ', { bold: true, link: { href: 'x' } })
  },
  'embed': content => fields(content).get('title').insertEmbed(0, { image: 'x' })
}
const updates = edits.map((edit, number) => {
  const doc = new Y.Doc()
  doc.clientID = client + number
  Y.applyUpdate(doc, Buffer.from(state, 'base64'))
  const before = Y.encodeStateVector(doc)
  all[edit](doc.getMap('blocks').get(block).get('content'))
  return [edit, Buffer.from(Y.encodeStateAsUpdate(doc, before)).toString('base64')]
})
process.stdout.write(JSON.stringify(Object.fromEntries(updates)))
