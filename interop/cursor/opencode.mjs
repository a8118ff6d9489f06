// The client opencode-cursor-oauth, driven by opencode-driver.mjs, which plays OpenCode.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { conversation } from './child.mjs';

const driver = join(dirname(fileURLToPath(import.meta.url)), 'opencode-driver.mjs');

export class OpenCode {
  static label = 'opencode';
  static does = new Set();
  static model = 'claude-4.5-sonnet';
  static strangeModel = 'no-such-model';
  static ownTool = { prompt: 'myadd', answer: /\b42\b/ };

  #messages = [{ role: 'system', content: 'You are a test.' }];

  // dir is where the conversation works; home holds the client's cache.
  constructor(server, home, dir) {
    Object.assign(this, { server, home, dir });
  }

  // ask gives the prompts to one process, one after the other. A later call is a new process
  // that goes on with the same history. interrupt: the text at which the person aborts; what
  // follows goes on in the same process.
  async ask(prompts, { model = OpenCode.model, interrupt } = {}) {
    const result = { session: undefined, answers: [], thinking: '', tools: [], error: '', models: [] };
    const env = { HOME: this.home, XDG_CACHE_HOME: join(this.home, 'cache'), CURSOR_API_URL: this.server.url, CURSOR_ACCESS_TOKEN: this.server.token };
    if (this.server.tls) env.NODE_EXTRA_CA_CERTS = this.server.tls.cert;
    const end = await conversation([driver], {
      env,
      cwd: this.dir,
      input: JSON.stringify({ model, messages: this.#messages, prompts, interrupt }),
      onEvent: (event) => {
        if (event.tool) result.tools.push(event.tool);
        if (event.messages) this.#messages = event.messages;
        for (const key of ['answers', 'thinking', 'models']) result[key] = event[key] ?? result[key];
      },
    });
    result.error = result.answers.filter((text) => text.includes('[Error:')).join('\n');
    return Object.assign(result, end);
  }
}
