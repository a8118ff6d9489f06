package catalog

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"weak"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/roost-dev/roost/internal/session"
)

// Catalog looks models up. The embedded data is decoded when it is first needed (about
// 10 ms) and left to the garbage collector afterwards, so that an idle server does not
// hold 1,500 models it never uses. The zero value is ready; safe for concurrent use.
type Catalog struct {
	mu      sync.Mutex
	decoded weak.Pointer[[]catwalk.Provider] // guarded by mu
}

// providers returns the embedded data, decoded again if it was released.
func (c *Catalog) providers() []catwalk.Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.decoded.Value(); all != nil {
		return *all
	}
	all := embedded.GetAll()
	c.decoded = weak.Make(&all)
	return all
}

func (c *Catalog) provider(id string) *catwalk.Provider {
	all := c.providers()
	i := slices.IndexFunc(all, func(p catwalk.Provider) bool { return string(p.ID) == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Lookup describes a model: o over the embedded entry over the defaults. known is the id of
// the provider in the embedded catalogue ("openai", "openrouter"); with "" the provider's
// own name is tried. api is the dialect it is spoken to in. An override that says
// everything about a model saves the decoding.
func (c *Catalog) Lookup(ref session.ModelRef, known, api string, o Override) Model {
	m := Model{Ref: ref, API: api}
	if !o.complete() {
		if p := c.provider(cmp.Or(known, ref.Provider)); p != nil {
			if i := slices.IndexFunc(p.Models, func(x catwalk.Model) bool { return x.ID == ref.ID }); i >= 0 {
				m = describe(ref, api, p.Models[i])
			}
		}
	}
	return o.apply(m)
}

// complete reports whether the catalogue has nothing to add.
func (o Override) complete() bool {
	return o.Name != "" && o.Reasoning != nil && len(o.Input) > 0 && o.ContextWindow > 0 &&
		o.MaxOutput > 0 && o.Cost != nil && len(o.ThinkingLevels) > 0
}

// Known returns the models that the embedded catalogue has for a provider, to be offered
// when the user gave a key and no list. The provider's own recommendation comes first,
// then the newest. It is empty for a provider it does not have, and for one whose dialect
// roost does not speak.
func (c *Catalog) Known(provider string) []Model {
	p := c.provider(provider)
	if p == nil {
		return nil
	}
	api := dialect(p.Type)
	if api == "" {
		return nil
	}
	models := make([]Model, 0, len(p.Models))
	for _, x := range p.Models {
		models = append(models, describe(session.ModelRef{Provider: provider, ID: x.ID}, api, x).whole())
	}
	slices.SortStableFunc(models, func(a, b Model) int {
		if first := cmp.Compare(preferred(b, p), preferred(a, p)); first != 0 {
			return first
		}
		return cmp.Compare(release(b.Ref.ID), release(a.Ref.ID))
	})
	return models
}

// Endpoint returns the base URL of a provider in the embedded catalogue and the dialect it
// speaks; both are "" when the catalogue does not have them.
func (c *Catalog) Endpoint(provider string) (baseURL, api string) {
	p := c.provider(provider)
	if p == nil {
		return "", ""
	}
	switch {
	case !strings.HasPrefix(p.APIEndpoint, "$"): // a variable's name stands for "the usual place"
		baseURL = strings.Clone(p.APIEndpoint)
	case p.ID == catwalk.InferenceProviderOpenAI:
		baseURL = "https://api.openai.com/v1"
	case p.ID == catwalk.InferenceProviderAnthropic:
		baseURL = "https://api.anthropic.com"
	}
	return baseURL, dialect(p.Type)
}

func dialect(t catwalk.Type) string {
	switch t {
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter, catwalk.TypeVercel:
		return APIOpenAIChat
	case catwalk.TypeAnthropic:
		return APIAnthropic
	case catwalk.TypeGoogle, catwalk.TypeAzure, catwalk.TypeBedrock, catwalk.TypeVertexAI:
	}
	return ""
}

func preferred(m Model, p *catwalk.Provider) int {
	if m.Ref.ID == p.DefaultLargeModelID {
		return 1
	}
	return 0
}

var numbers = regexp.MustCompile(`(\d{1,2})(?:[.-](\d{1,2}))?(?:[^\d]|$)`)

// release is a model's version as a number, from its id: gpt-5.2-codex is 502.
func release(id string) int {
	m := numbers.FindStringSubmatch(id)
	if m == nil {
		return 0
	}
	major, _ := strconv.Atoi(m[1]) // digits, by the pattern
	minor, _ := strconv.Atoi(m[2]) // "" is 0
	return 100*major + minor
}

// describe turns an entry into a Model that holds on to nothing of the decoded data.
func describe(ref session.ModelRef, api string, x catwalk.Model) Model {
	m := Model{
		Ref:            session.ModelRef{Provider: ref.Provider, ID: strings.Clone(ref.ID)},
		Name:           strings.Clone(x.Name),
		API:            api,
		Reasoning:      x.CanReason,
		Input:          []string{InputText},
		ContextWindow:  int(x.ContextWindow),
		MaxOutput:      int(x.DefaultMaxTokens),
		Cost:           price(x),
		ThinkingLevels: levels(x.CanReason, api, x.ReasoningLevels),
	}
	if x.SupportsImages {
		m.Input = append(m.Input, InputImage)
	}
	return m
}

// price reads the two cache prices, whose fields the catalogue fills in either order:
// reading from a cache is cheaper than plain input, and writing is not. Where a price is
// missing, plain input's is assumed.
func price(x catwalk.Model) session.Cost {
	cost := session.Cost{Input: x.CostPer1MIn, Output: x.CostPer1MOut, CacheRead: x.CostPer1MIn, CacheWrite: x.CostPer1MIn}
	for _, p := range []float64{x.CostPer1MInCached, x.CostPer1MOutCached} {
		switch {
		case p <= 0:
		case p < cost.Input:
			cost.CacheRead = p
		default:
			cost.CacheWrite = p
		}
	}
	return cost
}

// levels returns the thinking levels of a model from the efforts it lists.
func levels(reasons bool, api string, efforts []string) []session.Thinking {
	if !reasons {
		return []session.Thinking{session.ThinkingOff}
	}
	if len(efforts) == 0 {
		return []session.Thinking{session.ThinkingOff, session.ThinkingLow, session.ThinkingMedium, session.ThinkingHigh}
	}
	var list []session.Thinking
	if api == APIAnthropic {
		list = append(list, session.ThinkingOff) // not asking for thinking is always possible
	}
	for _, e := range efforts {
		if e == "none" {
			e = string(session.ThinkingOff)
		}
		list = append(list, session.Thinking(e))
	}
	if list = ascending(list); len(list) == 0 {
		return levels(true, api, nil)
	}
	return list
}
