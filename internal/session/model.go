package session

import "slices"

// ModelRef names a model: the provider's name in the configuration and the model's id there.
type ModelRef struct {
	Provider string
	ID       string
}

// String returns "provider/id".
func (m ModelRef) String() string { return m.Provider + "/" + m.ID }

// IsZero reports whether m names nothing.
func (m ModelRef) IsZero() bool { return m == ModelRef{} }

// Thinking is how much a model reasons before it answers.
type Thinking string

// The thinking levels, from none to most.
const (
	ThinkingOff     Thinking = "off"
	ThinkingMinimal Thinking = "minimal"
	ThinkingLow     Thinking = "low"
	ThinkingMedium  Thinking = "medium"
	ThinkingHigh    Thinking = "high"
	ThinkingXHigh   Thinking = "xhigh"
	ThinkingMax     Thinking = "max"
)

// ThinkingLevels lists every level in ascending order.
var ThinkingLevels = []Thinking{ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, ThinkingMax}

// Valid reports whether t is one of the levels.
func (t Thinking) Valid() bool {
	return slices.Contains(ThinkingLevels, t)
}

// Mode is what an agent may do and how it goes about it.
type Mode string

// The modes.
const (
	ModeAgent Mode = "agent" // everything
	ModeAsk   Mode = "ask"   // looks and answers, changes nothing
	ModePlan  Mode = "plan"  // looks and makes a plan, changes nothing
	ModeDebug Mode = "debug" // looks for the cause of a fault first
)

// Modes lists every mode.
var Modes = []Mode{ModeAgent, ModeAsk, ModePlan, ModeDebug}

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return slices.Contains(Modes, m) }

// Usage counts the tokens of one pass, and what they cost. Input excludes what was read
// from or written to a cache; Output includes Reasoning. Costs are in US dollars.
type Usage struct {
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
	Reasoning  int64
	Cost       Cost
}

// Total is the number of tokens that the pass handled.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning: u.Reasoning + v.Reasoning,
		Cost: Cost{
			Input: u.Cost.Input + v.Cost.Input, Output: u.Cost.Output + v.Cost.Output,
			CacheRead: u.Cost.CacheRead + v.Cost.CacheRead, CacheWrite: u.Cost.CacheWrite + v.Cost.CacheWrite,
		},
	}
}

// Cost is money in US dollars: of one pass in a Usage, of a million tokens in a price list.
type Cost struct {
	Input      float64
	Output     float64
	CacheRead  float64
	CacheWrite float64
}

// Total is the sum of all parts.
func (c Cost) Total() float64 { return c.Input + c.Output + c.CacheRead + c.CacheWrite }
