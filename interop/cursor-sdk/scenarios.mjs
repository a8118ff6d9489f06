// What this client can do beyond the scenarios that all share.
import assert from 'node:assert/strict';

import { scenarios as shared, slow } from '../cursor/scenarios.mjs';
import { prompted, spoken, whole } from '../cursor/transcript.mjs';

export const scenarios = {
  ...shared,
  'steer': async (t) => {
    let outcome;
    const got = await t.client.ask([`do shell ${t.dir}`], {
      onText: (run, _, message) => {
        if (!/tool/.test(message.type)) return;
        outcome ??= run.steer(`do turn 7 ${t.dir}`);
      },
    });
    assert.equal(got.error, '');
    assert.ok(outcome, 'no tool was shown');
    await outcome;
    assert.match(got.answers[0], /Answer 7\./);
    const items = await t.session(got);
    whole(items);
    assert.equal(prompted(items).length, 2);
  },
  'server killed in the middle of an answer': async (t) => {
    let killed;
    const got = await t.client.ask([`do slow ${t.dir}`], {
      onText: (_, said) => {
        if (said.includes('ten')) killed ??= t.server.stop('SIGKILL').then(() => t.server.start());
      },
    });
    await killed;
    assert.equal(got.error, '');
    const items = await t.session(got);
    whole(items);
    assert.equal(prompted(items).length, 1);
    assert.equal(spoken(items)[0].trimEnd(), slow.trimEnd(), 'no word is lost and none comes twice');
    assert.ok(got.answers[0].trimEnd().endsWith('nine ten'), got.answers[0]);
  },
};
