// The client @cursor/sdk, in this process. The server's address must be in CURSOR_BACKEND_URL
// before the package is loaded, so load comes after the server's start.
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = resolve(process.env.SDK);
let sdk;

async function load(server, home) {
  if (sdk) return;
  const rg = join(dirname(root), `sdk-${process.platform}-${process.arch}`, 'bin', 'rg');
  if (existsSync(rg)) process.env.CURSOR_RIPGREP_PATH ??= rg;
  process.env.CURSOR_BACKEND_URL = server.url;
  process.env.HOME = home;
  sdk = await import(pathToFileURL(join(root, 'dist/esm/index.js')).href);
}

const add = {
  description: 'adds two numbers',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  execute: ({ a, b }) => `The sum is ${a + b}.`,
};

export class Sdk {
  static label = 'sdk';
  static does = new Set(['delete', 'exit code', 'parallel', 'questions']);
  static model = 'fake/test-model';
  static strangeModel = 'no-such-model';
  static ownTool = { prompt: 'ownadd', answer: /\b42\b/ };

  #agent; // its id, once there is one

  // dir is where the conversation works; home holds the client's state.
  constructor(server, home, dir) {
    Object.assign(this, { server, home, dir });
  }

  // ask gives the prompts to one agent, one after the other. A later call resumes the agent from
  // what is on disk, as a new process does. interrupt: the text at which the run is cancelled.
  // onText gets the run and its text so far.
  async ask(prompts, { model = Sdk.model, interrupt, onText } = {}) {
    await load(this.server, this.home);
    const result = { session: undefined, answers: [], thinking: '', tools: [], error: '', code: 0, stderr: '' };
    const options = { apiKey: this.server.token, model: { id: model }, local: { cwd: this.dir, customTools: { add } } };
    if (sdk.JsonlLocalAgentStore) options.local.store = new sdk.JsonlLocalAgentStore(join(this.home, 'agents'));
    try {
      const agent = this.#agent ? await sdk.Agent.resume(this.#agent, options) : await sdk.Agent.create(options);
      this.#agent = result.session = agent.agentId;
      for (const prompt of prompts) await answer(await agent.send(prompt), result, interrupt, onText);
      agent.close();
    } catch (error) {
      result.error = error.message;
      result.code = 1;
    }
    return result;
  }
}

// answer collects what a run says until it ends.
async function answer(run, result, interrupt, onText) {
  result.answers.push('');
  let cancelled = false;
  const cancel = () => {
    cancelled = true;
    run.cancel().catch(() => {}); // a run that has ended cannot be cancelled
  };
  try {
    for await (const message of run.stream()) {
      take(message, result);
      const said = result.answers.at(-1);
      if (interrupt && !cancelled && said.includes(interrupt)) cancel();
      onText?.(run, said, message);
    }
    const { status, ...rest } = await run.wait();
    if (status !== 'finished' && !cancelled) throw new Error(`the run ends with ${status}: ${JSON.stringify(rest)}`);
  } catch (error) {
    if (!cancelled) throw error;
  }
}

function take(message, result) {
  if (message.type === 'thinking') result.thinking += message.text ?? '';
  if (message.type !== 'assistant') return;
  const texts = message.message.content.filter((block) => block.type === 'text').map((block) => block.text);
  result.answers[result.answers.length - 1] += texts.join('');
}
