package config

import (
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// API is the wire dialect of a provider.
type API string

// The dialects of this version.
const (
	APIOpenAIChat API = "openai-chat"
	APIAnthropic  API = "anthropic"
	APIScripted   API = "scripted" // answers from a script, without a network
)

// laterAPIs are dialects that the format knows and this version cannot speak.
var laterAPIs = []string{"openai-responses", "gemini"}

// DefaultIdleTimeout is how long a provider may be silent in the middle of an answer.
const DefaultIdleTimeout = 180 * time.Second

// DefaultBaseURL returns the address that a dialect uses when none is configured: the URL
// to which the dialect adds "/chat/completions" or "/messages". It is empty for the
// scripted dialect.
func DefaultBaseURL(api API) string {
	switch api {
	case APIOpenAIChat:
		return "https://api.openai.com/v1"
	case APIAnthropic:
		return "https://api.anthropic.com/v1"
	case APIScripted:
	}
	return ""
}

// Provider is one source of models.
type Provider struct {
	Name        string // 1 to 64 of [a-z0-9._-], begins with a letter or digit
	API         API
	BaseURL     string   // absolute http or https URL without user, query, fragment or final slash
	Key         *Key     // nil when no key is sent
	Headers     []Header // sent with every request, in the order of the file
	IdleTimeout time.Duration
	Script      string  // scripted only: absolute path; empty for the built-in demo
	Models      []Model // in the order of the file, ids unique; empty for those the catalogue knows
}

// Header is a request header. The value may hold a key, so it never prints.
type Header struct {
	Name  string
	Value Secret
}

// Model describes a model. Fields that are not configured have their zero value (nil for
// pointers and slices), and the catalogue's knowledge of the model counts for them.
type Model struct {
	ID              string
	Name            string
	ContextWindow   int // tokens
	MaxOutputTokens int
	Reasoning       *bool
	Input           []Input
	ThinkingLevels  []session.Thinking
	Cost            *session.Cost // US dollars for a million tokens
}

// Input is a kind of content that a model reads.
type Input string

// The kinds of content.
const (
	InputText  Input = "text"
	InputImage Input = "image"
)

// demoModel is what a scripted provider offers when its list is empty: no catalogue knows it.
func demoModel() Model {
	reasoning := true
	return Model{
		ID: "demo", Name: "Demo", ContextWindow: 128_000, MaxOutputTokens: 8192,
		Reasoning:      &reasoning,
		Input:          []Input{InputText, InputImage},
		ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingLow, session.ThinkingMedium, session.ThinkingHigh},
	}
}
