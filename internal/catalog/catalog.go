// Package catalog knows the models: their windows, prices, inputs and thinking levels. What
// the user configures wins, then the embedded catalogue, then cautious defaults. It makes
// no request; the catalogue is refreshed with a new release of roost.
package catalog

import (
	"slices"

	"github.com/roost-dev/roost/internal/session"
)

// The dialects that a model may be spoken to in.
const (
	APIOpenAIChat = "openai-completions"
	APIAnthropic  = "anthropic-messages"
	APIScripted   = "scripted"
)

// The kinds of input.
const (
	InputText  = "text"
	InputImage = "image"
)

// What is assumed of a model that nobody describes.
const (
	DefaultContextWindow = 128_000
	DefaultMaxOutput     = 8_192
)

// Model describes a model. Input has at least text, ThinkingLevels at least one level, in
// ascending order, and both windows are at least 1 token.
type Model struct {
	Ref            session.ModelRef
	Name           string // for people; never empty when Ref.ID is not
	API            string
	Reasoning      bool
	Input          []string
	ContextWindow  int
	MaxOutput      int
	Cost           session.Cost // US dollars per million tokens; zero when unknown
	ThinkingLevels []session.Thinking
	Authenticated  bool // a key is there, or none is needed; set by who knows the keys
}

// Images reports whether the model takes images.
func (m Model) Images() bool { return slices.Contains(m.Input, InputImage) }

// Override is what the user says about a model. Zero and nil leave a field as it is.
type Override struct {
	Name           string
	API            string
	Reasoning      *bool
	Input          []string
	ContextWindow  int
	MaxOutput      int
	Cost           *session.Cost
	ThinkingLevels []session.Thinking
}

// apply puts an override over m and restores what every Model guarantees.
func (o Override) apply(m Model) Model {
	if o.Name != "" {
		m.Name = o.Name
	}
	if o.API != "" {
		m.API = o.API
	}
	if o.Reasoning != nil && *o.Reasoning != m.Reasoning {
		m.Reasoning = *o.Reasoning
		m.ThinkingLevels = levels(m.Reasoning, m.API, nil)
	}
	if len(o.Input) > 0 {
		m.Input = o.Input
	}
	if o.ContextWindow > 0 {
		m.ContextWindow = o.ContextWindow
	}
	if o.MaxOutput > 0 {
		m.MaxOutput = o.MaxOutput
	}
	if o.Cost != nil {
		m.Cost = *o.Cost
	}
	if len(o.ThinkingLevels) > 0 {
		m.ThinkingLevels = ascending(o.ThinkingLevels)
	}
	return m.whole()
}

// whole fills in what a Model must have.
func (m Model) whole() Model {
	if m.Name == "" {
		m.Name = m.Ref.ID
	}
	if m.ContextWindow < 1 {
		m.ContextWindow = DefaultContextWindow
	}
	if m.MaxOutput < 1 {
		m.MaxOutput = DefaultMaxOutput
	}
	m.MaxOutput = min(m.MaxOutput, m.ContextWindow)
	if len(m.Input) == 0 {
		m.Input = []string{InputText}
	}
	if len(m.ThinkingLevels) == 0 {
		m.ThinkingLevels = levels(m.Reasoning, m.API, nil)
	}
	return m
}

// ascending returns the valid levels among list, in order, each once.
func ascending(list []session.Thinking) []session.Thinking {
	var sorted []session.Thinking
	for _, l := range session.ThinkingLevels {
		if slices.Contains(list, l) {
			sorted = append(sorted, l)
		}
	}
	return sorted
}

// Price returns what tokens cost at a price per million.
func Price(cost session.Cost, u session.Usage) session.Cost {
	const million = 1e6
	return session.Cost{
		Input:      cost.Input * float64(u.Input) / million,
		Output:     cost.Output * float64(u.Output) / million,
		CacheRead:  cost.CacheRead * float64(u.CacheRead) / million,
		CacheWrite: cost.CacheWrite * float64(u.CacheWrite) / million,
	}
}
