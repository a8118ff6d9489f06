package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// manual returns the document that users read, and its complete example.
func manual(t *testing.T) (doc, example string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(data), "```yaml\n")
	example, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the manual has no YAML example")
	}
	return string(data), example
}

func TestManualExampleIsValid(t *testing.T) {
	_, example := manual(t)
	c := mustParse(t, example)
	if got := c.DefaultModel.String(); got != "local/test-model" {
		t.Errorf("default model %s", got)
	}
	if len(c.Providers) != 4 || len(c.HTTP.Tokens) != 1 {
		t.Errorf("providers %d, tokens %d", len(c.Providers), len(c.HTTP.Tokens))
	}
	want := defaults()
	want.Web.Search = Search{Provider: SearchSearXNG, URL: "http://127.0.0.1:8888"} // none by default
	if c.Limits != want.Limits || c.Retention != want.Retention || c.Log != want.Log || c.Pi != want.Pi ||
		c.Cursor.LocalTools != want.Cursor.LocalTools || len(c.Aliases) != 1 || c.Compaction != want.Compaction || c.Subagents != want.Subagents || c.Web != want.Web {
		t.Error("the example should show the defaults")
	}
}

// knownKeys asks the decoder itself for the keys of every section, by giving each a key
// that nothing resembles.
func knownKeys(t *testing.T) map[string][]string {
	t.Helper()
	documents := map[string]string{
		"":                      "%s",
		"providers.NAME":        "providers: {n: {%s}}",
		"providers.NAME.models": "providers: {n: {models: [{%s}]}}",
		"cost":                  "providers: {n: {models: [{cost: {%s}}]}}",
		"workspace":             "workspace: {%s}",
		"pi":                    "pi: {%s}",
		"cursor":                "cursor: {%s}",
		"limits":                "limits: {%s}",
		"retention":             "retention: {%s}",
		"http":                  "http: {%s}",
		"tokens":                "http: {tokens: [{%s}]}",
		"log":                   "log: {%s}",
		"mcp_servers.NAME":      "mcp_servers: {n: {%s}}",
		"permissions":           "permissions: {%s}",
		"permissions.rules":     "permissions: {rules: [{%s}]}",
		"hooks":                 "hooks: {%s}",
		"hooks.before_tool":     "hooks: {before_tool: [{%s}]}",
		"compaction":            "compaction: {%s}",
		"subagents":             "subagents: {%s}",
		"web":                   "web: {%s}",
		"web.search":            "web: {search: {%s}}",
		"prompt":                "prompt: {%s}",
	}
	known := regexp.MustCompile(`unknown key "qqqqqqqqqqqqqqqqqq"; known: (.*)`)
	keys := map[string][]string{}
	for section, document := range documents {
		_, err := Parse("c.yaml", fmt.Appendf(nil, document, "qqqqqqqqqqqqqqqqqq: 1"), noEnv)
		m := known.FindStringSubmatch(fmt.Sprint(err))
		if m == nil {
			t.Fatalf("%s: no list of keys in %v", section, err)
		}
		keys[section] = strings.Split(m[1], ", ")
	}
	return keys
}

func TestManualNamesEveryKey(t *testing.T) {
	doc, example := manual(t)
	count := 0
	for section, keys := range knownKeys(t) {
		for _, key := range keys {
			count++
			if !strings.Contains(doc, "`"+key+"`") && !strings.Contains(doc, "\n## "+key+"\n") {
				t.Errorf("%s.%s is not explained", section, key)
			}
			if !regexp.MustCompile(`\b` + key + `:`).MatchString(example) {
				t.Errorf("%s.%s is not in the example", section, key)
			}
		}
	}
	if count < 75 {
		t.Errorf("only %d keys were found", count)
	}
}

// Every key that the manual's tables explain must exist.
func TestManualNamesNoOtherKey(t *testing.T) {
	doc, _ := manual(t)
	var all []string
	for _, keys := range knownKeys(t) {
		all = append(all, keys...)
	}
	_, tables, _ := strings.Cut(doc, "## providers")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(tables, -1) {
		if !slices.Contains(all, row[1]) {
			t.Errorf("the manual explains %s, which does not exist", row[1])
		}
	}
}

func TestManualRangesOfNumbers(t *testing.T) {
	doc, _ := manual(t)
	d := defaults()
	for key, value := range map[string]int{
		"compaction.reserve": d.Compaction.Reserve, "compaction.keep": d.Compaction.Keep,
		"subagents.depth": d.Subagents.Depth, "subagents.parallel": d.Subagents.Parallel,
	} {
		section, name, _ := strings.Cut(key, ".")
		row := regexp.MustCompile(fmt.Sprintf("\\| `%s` \\| `%d` \\| (\\d+) to (\\d+) \\|", name, value)).FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("the manual's default of %s is not %d", key, value)
			continue
		}
		for _, edge := range row[1:] {
			mustParse(t, fmt.Sprintf("%s: {%s: %s}", section, name, edge))
		}
		for _, outside := range []string{"-1", "1000001"} {
			if _, err := Parse("c.yaml", fmt.Appendf(nil, "%s: {%s: %s}", section, name, outside), noEnv); err == nil {
				t.Errorf("%s: %s was accepted", key, outside)
			}
		}
	}
}

func TestManualLimits(t *testing.T) {
	doc, _ := manual(t)
	l := defaults().Limits
	for key, value := range map[string]string{
		"sessions":    fmt.Sprint(l.Sessions),
		"connections": fmt.Sprint(l.Connections),
		"body_bytes":  formatSize(l.BodyBytes),
		"idle_unload": strings.TrimSuffix(l.IdleUnload.String(), "0s"),
		"heartbeat":   l.Heartbeat.String(),
	} {
		row := regexp.MustCompile("\\| `" + key + "` \\| `" + value + "` \\| (\\S+) to (\\S+) \\|").FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("the manual's default of %s is not %s", key, value)
			continue
		}
		for _, edge := range row[1:] { // the documented edges are allowed
			mustParse(t, fmt.Sprintf("limits: {%s: %s}", key, edge))
		}
		for _, outside := range []string{"0", "0s", "0B", "9999999", "9999h", "9GiB"} {
			_, err := Parse("c.yaml", fmt.Appendf(nil, "limits: {%s: %s}", key, outside), noEnv)
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%s: %s was accepted", key, outside)
			}
		}
	}
}

func TestManualRetention(t *testing.T) {
	doc, _ := manual(t)
	if c := mustParse(t, "retention: {}"); c.Retention != (Retention{}) {
		t.Errorf("the default removes sessions: %+v", c.Retention)
	}
	for _, key := range []string{"sessions", "age", "size"} {
		row := regexp.MustCompile("\\| `" + key + "` \\| `0` \\| (\\S+) to (\\S+) \\|").FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("retention.%s is not in the manual with the default 0", key)
			continue
		}
		for _, edge := range append(row[1:], "0") {
			mustParse(t, fmt.Sprintf("retention: {%s: %s}", key, edge))
		}
		for _, outside := range []string{"-1", "1000001", "59m", "87601h", "1023KiB", "1025GiB"} {
			_, err := Parse("c.yaml", fmt.Appendf(nil, "retention: {%s: %s}", key, outside), noEnv)
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%s: %s was accepted", key, outside)
			}
		}
	}
}
