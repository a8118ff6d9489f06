// The client omp (@oh-my-pi/pi-coding-agent), which runs tools by itself.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { conversation, modules } from './child.mjs';

const cli = join(modules, '@oh-my-pi/pi-coding-agent/dist/cli.js');
const flags = ['-p', '--mode', 'json', '--auto-approve', '--no-title', '--no-lsp', '--no-extensions', '--no-skills', '--no-rules'];

export class Omp {
  static label = 'omp';
  static does = new Set(['cards', 'delete', 'exit code', 'streams', 'parallel', 'questions']);
  static model = 'claude-4.5-sonnet';
  static strangeModel = 'gpt-5.2'; // one of its catalogue that roost.yaml does not name
  static ownTool = { prompt: 'ownglob', answer: /a\.txt/ };

  #asked = false;

  // dir is where the conversation works; home holds the client's settings for this server.
  constructor(server, home, dir) {
    Object.assign(this, { server, home, dir });
    mkdirSync(join(home, '.omp/agent'), { recursive: true });
    writeFileSync(join(home, '.omp/agent/models.yml'), `providers:\n  cursor:\n    baseUrl: ${server.url}\n`);
    // A fault is to be seen, not tried again for minutes.
    writeFileSync(join(home, '.omp/agent/config.yml'), 'retry:\n  enabled: false\n');
  }

  // ask gives the prompts to one process, one after the other. A later call is a new process
  // that goes on with the same session. interrupt: the text at which the person presses Ctrl-C.
  async ask(prompts, { model = Omp.model, interrupt } = {}) {
    const result = { session: undefined, answers: [], thinking: '', tools: [], error: '' };
    const args = [cli, ...flags, '--model', `cursor/${model}`, '--session-dir', join(this.home, 'sessions', this.dir.replaceAll('/', '-'))];
    if (this.#asked) args.push('--continue');
    this.#asked = true;
    const env = { HOME: this.home, CURSOR_ACCESS_TOKEN: this.server.token, OMP_SKIP_UPDATE: '1', PI_OFFLINE: '1' };
    if (this.server.tls) env.NODE_EXTRA_CA_CERTS = this.server.tls.cert;
    const seen = reader(result);
    const end = await conversation([...args, ...prompts], {
      env,
      cwd: this.dir,
      onEvent: (event, kill) => {
        seen(event);
        if (interrupt && result.answers.at(-1)?.includes(interrupt)) {
          kill('SIGINT');
          interrupt = undefined;
        }
      },
    });
    return Object.assign(result, end);
  }
}

// reader returns a function that puts what the client's events say into result.
function reader(result) {
  const running = new Map();
  return (event) => {
    switch (event.type) {
      case 'session':
        result.session = event.id;
        break;
      case 'agent_start':
        result.answers.push('');
        break;
      case 'message_update':
        if (event.assistantMessageEvent.type === 'text_delta') result.answers[result.answers.length - 1] += event.assistantMessageEvent.delta;
        if (event.assistantMessageEvent.type === 'thinking_delta') result.thinking += event.assistantMessageEvent.delta;
        break;
      case 'message_end':
        if (event.message.role !== 'assistant') break;
        result.answers[result.answers.length - 1] = textOf(event.message);
        result.thinking = event.message.content.filter((c) => c.type === 'thinking').map((c) => c.thinking).join('');
        result.error ||= event.message.errorMessage ?? '';
        break;
      case 'tool_execution_start':
        running.set(event.toolCallId, { name: event.toolName, pieces: 0, output: '', failed: false });
        result.tools.push(running.get(event.toolCallId));
        break;
      case 'tool_execution_update':
        if (running.has(event.toolCallId)) running.get(event.toolCallId).pieces++;
        break;
      case 'tool_execution_end':
        if (running.has(event.toolCallId)) Object.assign(running.get(event.toolCallId), { output: textOf(event.result), failed: event.isError });
        break;
    }
  };
}

const textOf = (message) => (message?.content ?? []).filter((c) => c.type === 'text').map((c) => c.text).join('');
