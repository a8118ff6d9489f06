// Runs in bun, which the package needs. It starts the package's OpenAI endpoint, as its plugin
// does, and is the OpenAI client: it sends prompts, runs the tools that are called, and sends
// their results, until the answer is complete. Standard input: {model, messages, prompts,
// interrupt}. Standard output: JSON, a line an event.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { getCursorModels } from './node_modules/opencode-cursor-oauth/dist/models.js';
import { startProxy, stopProxy } from './node_modules/opencode-cursor-oauth/dist/proxy.js';

const maxPasses = 12;
const tools = {
  read: [['filePath'], ({ filePath }) => readFileSync(filePath, 'utf8')],
  write: [['filePath', 'content'], ({ filePath, content }) => {
    mkdirSync(dirname(filePath), { recursive: true });
    writeFileSync(filePath, content);
    return 'written';
  }],
  bash: [['command', 'workdir'], ({ command, workdir }) => {
    const { stdout, stderr } = spawnSync('bash', ['-c', command], { cwd: workdir, encoding: 'utf8' });
    return stdout + stderr;
  }],
  grep: [['pattern', 'path'], ({ pattern, path }) => spawnSync('grep', ['-rn', pattern, path], { encoding: 'utf8' }).stdout],
  glob: [['pattern', 'path'], ({ pattern, path }) => [...new Bun.Glob(pattern).scanSync({ cwd: path, absolute: true })].join('\n')],
  myadd: [['a', 'b'], ({ a, b }) => String(Number(a) + Number(b))],
};
const offered = Object.entries(tools).map(([name, [parameters]]) => ({
  type: 'function',
  function: { name, description: name, parameters: { type: 'object', properties: Object.fromEntries(parameters.map((p) => [p, { type: 'string' }])) } },
}));

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const { model, messages, prompts, interrupt } = JSON.parse(await Bun.stdin.text());
const token = process.env.CURSOR_ACCESS_TOKEN;
const models = await getCursorModels(token);
const port = await startProxy(async () => token, models);
const answers = [];
let thinking = '';

for (const prompt of prompts) {
  messages.push({ role: 'user', content: prompt });
  answers.push('');
  await answerFully();
}
say({ answers, thinking, messages, models: models.map((m) => m.id) });
// The endpoint keeps what it learnt on disk, and does not say when it has done so.
await Bun.sleep(300);
stopProxy();
process.exit();

// answerFully asks until a pass calls no tool.
async function answerFully() {
  for (let pass = 0; pass < maxPasses; pass++) {
    const { text, calls, aborted } = await ask();
    answers[answers.length - 1] += text;
    if (text) messages.push({ role: 'assistant', content: text });
    if (aborted || calls.length === 0) return;
    messages.push({ role: 'assistant', content: null, tool_calls: calls });
    for (const call of calls) messages.push({ role: 'tool', tool_call_id: call.id, content: runTool(call.function) });
  }
  throw new Error(`the model called tools in ${maxPasses} passes`);
}

function runTool({ name, arguments: input }) {
  let tool = { name, pieces: 1, failed: false };
  try {
    tool.output = tools[name][1](JSON.parse(input));
  } catch (error) {
    tool = { ...tool, output: `Error: ${error.message}`, failed: true };
  }
  say({ tool });
  return tool.output;
}

// ask makes one request and collects the streamed answer.
async function ask() {
  const abort = new AbortController();
  const answer = { text: '', calls: [], aborted: false };
  try {
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      signal: abort.signal,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, messages, tools: offered }),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    for await (const { delta } of choices(response.body)) {
      answer.text += delta?.content ?? '';
      thinking += delta?.reasoning_content ?? '';
      answer.calls.push(...(delta?.tool_calls ?? []));
      if (interrupt && answer.text.includes(interrupt)) {
        answer.aborted = true;
        break;
      }
    }
  } finally {
    if (answer.aborted) abort.abort();
  }
  return answer;
}

async function* choices(body) {
  let rest = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.replace(/^data: /, '');
      if (data !== '[DONE]') yield* JSON.parse(data).choices;
    }
  }
}
