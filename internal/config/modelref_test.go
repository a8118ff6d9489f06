package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

const twoProviders = "providers: {fake: {api: scripted, models: [{id: test-model}, {id: a/b}]}, open: {api: anthropic}}\n"

func TestAliases(t *testing.T) {
	c := mustParse(t, twoProviders+`aliases:
  claude-4.5-sonnet: fake/test-model
  fake: fake/a/b
  vendor/model: ${WHERE}
  any: open/whatever
`, "WHERE", "fake/test-model")
	want := map[string]session.ModelRef{
		"claude-4.5-sonnet": {Provider: "fake", ID: "test-model"},
		"fake":              {Provider: "fake", ID: "a/b"},
		"vendor/model":      {Provider: "fake", ID: "test-model"},
		"any":               {Provider: "open", ID: "whatever"},
	}
	if !maps.Equal(c.Aliases, want) {
		t.Errorf("got %v, want %v", c.Aliases, want)
	}
	if c := mustParse(t, twoProviders+"aliases:"); len(c.Aliases) != 0 {
		t.Errorf("an empty section gives %v", c.Aliases)
	}
}

func TestAliasOfAProviderOfTheEnvironment(t *testing.T) {
	c := mustParse(t, "aliases: {sonnet: anthropic/claude}", "ANTHROPIC_API_KEY", "hunter2")
	if got := c.Aliases["sonnet"].String(); got != "anthropic/claude" {
		t.Errorf("got %s", got)
	}
}

func TestAliasErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x: fake/test-mdel":                       `c.yaml:2:14: aliases.x: provider fake: unknown model "test-mdel"; did you mean "test-model"?`,
		"x: fak/test-model":                       `aliases.x: unknown provider "fak"; did you mean "fake"?`,
		"x: test-model":                           `aliases.x: must be provider/model, not "test-model"`,
		"x: fake/":                                "must be provider/model",
		"x: [fake/test-model]":                    "aliases.x: must be text",
		"x: 1":                                    "must be text; put it in quotes",
		"x:":                                      "aliases.x: has no value",
		"default: fake/test-model":                `c.yaml:2:11: aliases: "default" asks for the default model; set default_model`,
		"auto: fake/test-model":                   "set default_model",
		"fake/test-model: fake/a/b":               `"fake/test-model" would hide a model of provider fake`,
		"'a b': fake/test-model":                  `"a b" must be 1 to 128 visible ASCII characters`,
		"'': fake/test-model":                     "must be 1 to 128 visible ASCII characters",
		strings.Repeat("x", 129) + ": fake/a/b":   "must be 1 to 128",
		"x: fake/a/b, x: fake/a/b":                "already defined",
		"y: fake/a/b, x: '${NOPE}'":               "environment variable NOPE is not set",
		strings.Join(many("x%d: fake/a/b"), ", "): "more than 1000 aliases",
	} {
		_, err := Parse("c.yaml", []byte(twoProviders+"aliases: {"+text+"}"), noEnv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Parse("c.yaml", []byte("aliases: [x]"), noEnv); err == nil || !strings.Contains(err.Error(), "aliases: must be a mapping") {
		t.Errorf("a list: %v", err)
	}
}

func many(format string) []string {
	list := make([]string, maxAliases+1)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return list
}

func TestCursor(t *testing.T) {
	if c := mustParse(t, ""); len(c.Cursor.EventStreamClients) != 0 || !c.Cursor.LocalTools {
		t.Errorf("defaults: %+v", c.Cursor)
	}
	c := mustParse(t, "cursor: {event_stream_clients: [ide, cli], local_tools: false}")
	if !slices.Equal(c.Cursor.EventStreamClients, []string{"ide", "cli"}) || c.Cursor.LocalTools {
		t.Errorf("got %+v", c.Cursor)
	}
	for text, want := range map[string]string{
		"event_stream_clients: ide":      "cursor.event_stream_clients: must be a list",
		"event_stream_clients: ['a b']":  `cursor.event_stream_clients[0]: "a b" is not a type of client`,
		"event_stream_clients: [ide, 1]": "cursor.event_stream_clients[1]: must be text",
		"local_tools: 'yes'":             "cursor.local_tools: must be true or false",
		"local_tool: true":               `unknown key "local_tool"; did you mean "local_tools"?`,
	} {
		if _, err := Parse("c.yaml", []byte("cursor: {"+text+"}"), noEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
