package cursor

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func testNames() modelNames {
	return newModelNames(Options{
		Models:  offered,
		Default: func() session.ModelRef { return session.ModelRef{Provider: "fake", ID: "test-model"} },
		Aliases: map[string]session.ModelRef{
			"claude-4.5-sonnet": {Provider: "local", ID: "small:8b"},
			"vendor/shared":     {Provider: "local", ID: "vendor/shared"}, // chosen among two
			"test-model":        {Provider: "local", ID: "small:8b"},      // more than an id alone
			"gone":              {Provider: "fake", ID: "gone"},
		},
		Thinking: session.ThinkingMedium,
	})
}

func TestFindModel(t *testing.T) {
	names := testNames()
	for name, want := range map[string]string{
		"fake/test-model": "fake/test-model", "local/small:8b": "local/small:8b", "local/vendor/shared": "local/vendor/shared",
		"small:8b": "local/small:8b", " small:8b ": "local/small:8b",
		"claude-4.5-sonnet": "local/small:8b", "vendor/shared": "local/vendor/shared", "test-model": "local/small:8b",
		"": "fake/test-model", " ": "fake/test-model", "default": "fake/test-model", "auto": "fake/test-model",
	} {
		m, _, err := names.find(name, cursorwire.EffortUnset)
		if err != nil || m.Ref.String() != want {
			t.Errorf("%q: %s, %v", name, m.Ref, err)
		}
	}
}

func TestFindModelErrors(t *testing.T) {
	none := newModelNames(Options{Models: func() []catalog.Model { return nil }, Default: func() session.ModelRef { return session.ModelRef{} }})
	many := newModelNames(Options{
		Models:  func() []catalog.Model { return slices.Repeat(offered(), 3) },
		Default: func() session.ModelRef { return session.ModelRef{Provider: "fake", ID: "other"} },
	})
	for _, tc := range []struct {
		names modelNames
		model string
		want  []string
	}{
		{testNames(), "gpt-9", []string{`no model "gpt-9"`, "Choose one of fake/test-model, local/small:8b, local/vendor/shared, fake/vendor/shared."}},
		{testNames(), "fake/small:8b", []string{`no model "fake/small:8b"`}},
		{testNames(), "Default", []string{`no model "Default"`}},
		{testNames(), "gone", []string{`"gone" is fake/gone, which is not on offer`, "fake/test-model"}},
		{testNames(), strings.Repeat("x", 10_000), []string{"no model"}},
		{testNames(), "a\x00\xff", []string{`"a\x00\xff"`}},
		{newModelNames(Options{Models: offered}), "vendor/shared", []string{"Several providers", "local/vendor/shared, fake/vendor/shared."}},
		{none, "x", []string{"No model is configured."}},
		{none, "auto", []string{"No model is configured."}},
		{many, "", []string{"the default model is fake/other, which is not on offer", "and 4 more."}},
	} {
		_, _, err := tc.names.find(tc.model, cursorwire.EffortHigh)
		if err == nil || err.Code != cursorwire.InvalidArgument || err.Details.GetError() != aiserverv1.ErrorDetails_ERROR_BAD_MODEL_NAME || len(err.Message) > 400 {
			t.Errorf("%.40q: %v", tc.model, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Message, want) {
				t.Errorf("%.40q:\n got %s\nwant %s", tc.model, err.Message, want)
			}
		}
	}
}

func TestEffortIsClampedToTheModel(t *testing.T) {
	for _, tc := range []struct {
		model  string
		effort cursorwire.Effort
		want   session.Thinking
	}{
		{"fake/test-model", cursorwire.EffortUnset, session.ThinkingLow}, // the server's medium, which it has not
		{"fake/test-model", cursorwire.EffortDisabled, session.ThinkingOff},
		{"fake/test-model", cursorwire.EffortLow, session.ThinkingLow},
		{"fake/test-model", cursorwire.EffortMedium, session.ThinkingLow},
		{"fake/test-model", cursorwire.EffortHigh, session.ThinkingHigh},
		{"fake/test-model", cursorwire.EffortXHigh, session.ThinkingHigh},
		{"fake/test-model", cursorwire.EffortMax, session.ThinkingHigh},
		{"fake/test-model", "newer", session.ThinkingLow},
		{"local/small:8b", cursorwire.EffortMax, session.ThinkingOff},
		{"fake/vendor/shared", cursorwire.EffortDisabled, session.ThinkingHigh}, // it cannot but think
	} {
		if _, got, err := testNames().find(tc.model, tc.effort); err != nil || got != tc.want {
			t.Errorf("%s at %q: %s, %v", tc.model, tc.effort, got, err)
		}
	}
}

// Whatever is on offer: no name and no display name comes twice, every name of the list finds its
// model, and so does every variant, at the effort that it says.
func TestEveryOfferIsFoundUnderItsName(t *testing.T) {
	models := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) catalog.Model {
		return catalog.Model{
			Ref: session.ModelRef{
				Provider: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "provider"),
				ID:       rapid.SampledFrom([]string{"m", "m:8b", "m:low", "x/m", "default", "a/m", "b"}).Draw(t, "id"),
			},
			Name:           rapid.SampledFrom([]string{"M", "N"}).Draw(t, "name"),
			ThinkingLevels: []session.Thinking{rapid.SampledFrom(session.ThinkingLevels[:3]).Draw(t, "low"), rapid.SampledFrom(session.ThinkingLevels[3:]).Draw(t, "high")},
		}
	}), 0, 8, func(m catalog.Model) session.ModelRef { return m.Ref })
	rapid.Check(t, func(t *rapid.T) {
		list := models.Draw(t, "models")
		names := newModelNames(Options{
			Models:  func() []catalog.Model { return list },
			Default: func() session.ModelRef { return session.ModelRef{Provider: "a", ID: "m"} },
			Aliases: map[string]session.ModelRef{"m": {Provider: "b", ID: "m"}, "x/m": {Provider: "a", ID: "m:8b"}, "N": {Provider: "a", ID: "m"}},
		})
		c := &calls{names: names}
		seen := map[string]bool{}
		shown := map[string]bool{}
		for _, o := range names.offers() {
			if seen[o.name] || shown[o.display] {
				t.Fatalf("%s (%s) comes twice", o.name, o.display)
			}
			seen[o.name], shown[o.display] = true, true
			for _, name := range append([]string{o.name}, o.aliases...) {
				if m, _, err := names.find(name, ""); err != nil || m.Ref != o.model.Ref {
					t.Fatalf("%s finds %s, %v; want %s", name, m.Ref, err, o.model.Ref)
				}
			}
			for _, v := range c.availableModel(o).Variants {
				checkVariant(t, names, o, v.GetVariantStringRepresentation())
			}
		}
	})
}

func checkVariant(t *rapid.T, names modelNames, o offer, variant string) {
	name, effort := cursorwire.RequestedModel(&agentv1.RequestedModel{ModelId: variant, IsVariantStringRepresentation: true}, nil)
	m, level, err := names.find(name, effort)
	if err != nil || m.Ref != o.model.Ref || !strings.HasSuffix(variant, ":"+string(effortOf(level))) {
		t.Fatalf("the variant %s finds %s at %s, %v", variant, m.Ref, level, err)
	}
}
