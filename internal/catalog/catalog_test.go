package catalog_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/session"
)

func ref(provider, id string) session.ModelRef { return session.ModelRef{Provider: provider, ID: id} }

func TestLookupKnownModel(t *testing.T) {
	var c catalog.Catalog
	m := c.Lookup(ref("anthropic", "claude-opus-4-6"), "", catalog.APIAnthropic, catalog.Override{})
	if m.Name == "" || m.Name == "claude-opus-4-6" || !m.Reasoning || m.ContextWindow != 200000 || m.MaxOutput != 128000 || !m.Images() {
		t.Errorf("metadata: %+v", m)
	}
	if want := (session.Cost{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25}); m.Cost != want {
		t.Errorf("cost %+v, want %+v", m.Cost, want)
	}
	want := []session.Thinking{session.ThinkingOff, session.ThinkingLow, session.ThinkingMedium, session.ThinkingHigh, session.ThinkingMax}
	if !slices.Equal(m.ThinkingLevels, want) {
		t.Errorf("levels %v", m.ThinkingLevels)
	}
	other := c.Lookup(ref("mine", "claude-opus-4-6"), "anthropic", catalog.APIAnthropic, catalog.Override{})
	if other.Cost != m.Cost || other.Ref != ref("mine", "claude-opus-4-6") {
		t.Errorf("under another name: %+v", other)
	}
}

func TestCachePricesInEitherOrder(t *testing.T) {
	var c catalog.Catalog
	for id, want := range map[string]session.Cost{
		"gpt-5.5": {Input: 5, Output: 30, CacheRead: 0.5, CacheWrite: 5},
		"o3":      {Input: 2, Output: 8, CacheRead: 0.5, CacheWrite: 2},
	} {
		if got := c.Lookup(ref("openai", id), "", catalog.APIOpenAIChat, catalog.Override{}).Cost; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}

func TestUnknownModel(t *testing.T) {
	var c catalog.Catalog
	for _, r := range []session.ModelRef{ref("openai", "nobody"), ref("nobody", "x")} {
		m := c.Lookup(r, "", catalog.APIOpenAIChat, catalog.Override{})
		if m.Name != r.ID || m.ContextWindow != 128000 || m.MaxOutput != 8192 || m.Reasoning || m.Cost != (session.Cost{}) ||
			!slices.Equal(m.ThinkingLevels, []session.Thinking{session.ThinkingOff}) || !slices.Equal(m.Input, []string{"text"}) {
			t.Errorf("%v: %+v", r, m)
		}
	}
}

func TestOverridesWin(t *testing.T) {
	var c catalog.Catalog
	yes := true
	o := catalog.Override{
		Name: "N", API: "a", Reasoning: &yes, Input: []string{"text", "image"}, ContextWindow: 1000, MaxOutput: 5000,
		Cost: &session.Cost{Input: 1}, ThinkingLevels: []session.Thinking{"high", "nonsense", "low", "high"},
	}
	m := c.Lookup(ref("openai", "gpt-4o"), "", catalog.APIOpenAIChat, o)
	if m.Name != "N" || m.API != "a" || !m.Reasoning || !m.Images() || m.ContextWindow != 1000 || m.MaxOutput != 1000 || m.Cost.Input != 1 ||
		!slices.Equal(m.ThinkingLevels, []session.Thinking{"low", "high"}) {
		t.Errorf("got %+v", m)
	}
	m = c.Lookup(ref("openai", "gpt-4o"), "", catalog.APIOpenAIChat, catalog.Override{Reasoning: &yes})
	if len(m.ThinkingLevels) < 2 || m.ContextWindow != 128000 || m.Cost.Input == 0 {
		t.Errorf("a reasoning override alone: %+v", m)
	}
	no := false
	m = c.Lookup(ref("openai", "gpt-5"), "", catalog.APIOpenAIChat, catalog.Override{Reasoning: &no})
	if !slices.Equal(m.ThinkingLevels, []session.Thinking{session.ThinkingOff}) {
		t.Errorf("no reasoning: %v", m.ThinkingLevels)
	}
	m = c.Lookup(ref("x", "y"), "", "a", catalog.Override{ThinkingLevels: []session.Thinking{"nonsense"}})
	if len(m.ThinkingLevels) == 0 {
		t.Error("no level is left")
	}
}

// Every model that is offered keeps what Model promises.
func TestKnown(t *testing.T) {
	var c catalog.Catalog
	for provider, first := range map[string]string{"openai": "gpt-5.6-sol", "anthropic": "claude-sonnet-4-6"} {
		models := c.Known(provider)
		if len(models) < 5 || models[0].Ref.ID != first {
			t.Fatalf("%s: %d models, first %v", provider, len(models), models[0].Ref)
		}
		for _, m := range models {
			if m.Ref.Provider != provider || m.Name == "" || m.ContextWindow < 1 || m.MaxOutput < 1 || m.API == "" ||
				len(m.ThinkingLevels) == 0 || len(m.Input) == 0 || m.Authenticated {
				t.Errorf("%+v", m)
			}
		}
	}
	models := c.Known("openai")
	at := func(id string) int {
		return slices.IndexFunc(models, func(m catalog.Model) bool { return m.Ref.ID == id })
	}
	if at("gpt-5.5") >= at("gpt-5") || at("gpt-5") >= at("gpt-4o") {
		t.Errorf("not newest first: %d %d %d", at("gpt-5.5"), at("gpt-5"), at("gpt-4o"))
	}
	if got := append(c.Known("nobody"), c.Known("gemini")...); len(got) != 0 {
		t.Errorf("offers %d models nobody can ask", len(got))
	}
}

func TestEndpoint(t *testing.T) {
	var c catalog.Catalog
	for provider, want := range map[string][2]string{
		"openai":     {"https://api.openai.com/v1", catalog.APIOpenAIChat},
		"anthropic":  {"https://api.anthropic.com", catalog.APIAnthropic},
		"openrouter": {"https://openrouter.ai/api/v1", catalog.APIOpenAIChat},
		"gemini":     {"", ""},
		"nobody":     {"", ""},
	} {
		if u, api := c.Endpoint(provider); u != want[0] || api != want[1] {
			t.Errorf("%s: %q %q", provider, u, api)
		}
	}
}

func TestPrice(t *testing.T) {
	got := catalog.Price(session.Cost{Input: 1, Output: 2, CacheRead: 4, CacheWrite: 8},
		session.Usage{Input: 1e6, Output: 5e5, CacheRead: 250000, CacheWrite: 125000, Reasoning: 5e5})
	if got != (session.Cost{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1}) {
		t.Errorf("got %+v", got)
	}
}

// The decoded data is released: after a collection there is nothing left but
// the models that were asked for.
func TestReleased(t *testing.T) {
	var c catalog.Catalog
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	kept := append(c.Known("openai"), c.Known("anthropic")...)
	after := heap()
	if after > before+256<<10 {
		t.Errorf("%d bytes stay for %d models", after-before, len(kept))
	}
	runtime.KeepAlive(kept)
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var c catalog.Catalog
		c.Known("openai")
	}
}
