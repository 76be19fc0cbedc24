// Writes counts.json: how many tokens each sample of the corpus has. Run in this folder:
//   npm install --no-save --prefix "$TMPDIR" gpt-tokenizer@4.0.0
//   NODE_PATH="$TMPDIR/node_modules" node count_tokens.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const counts = {};
for (const encoding of ['o200k_base', 'cl100k_base']) {
  const { countTokens } = require(`gpt-tokenizer/encoding/${encoding}`);
  counts[encoding] = {};
  for (const language of ['english', 'german', 'chinese', 'code', 'json', 'emoji']) {
    const samples = readFileSync(`${language}.txt`, 'utf8').trimEnd().split('\n%%\n');
    counts[encoding][language] = samples.map((sample) => countTokens(sample));
  }
}
writeFileSync('counts.json', JSON.stringify(counts, null, 1).replace(/\n {3,}(?=\d)/g, ' ').replace(/\n {2}\]/g, ' ]') + '\n');
