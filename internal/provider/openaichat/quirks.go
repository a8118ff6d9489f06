package openaichat

import (
	"regexp"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// quirks are what providers and models of this dialect want said differently.
type quirks struct {
	maxTokens string // "" chooses by the model's name
	official  bool   // OpenAI itself
}

// Models of OpenAI that reason refuse max_tokens.
var newOpenAI = regexp.MustCompile(`(^|[/.])(gpt-[5-9]|gpt-\d\d|o[1-9])`)

// Models of OpenAI from which on an effort of "none" turns reasoning off.
var knowsNone = regexp.MustCompile(`gpt-(5\.[1-9]|[6-9]|\d\d)`)

func (q quirks) limit(r *request, model string, tokens int) {
	if tokens <= 0 {
		return
	}
	field := q.maxTokens
	if field == "" && (q.official || newOpenAI.MatchString(model)) {
		field = "max_completion_tokens"
	}
	if field == "max_completion_tokens" {
		r.MaxCompletionTokens = tokens
	} else {
		r.MaxTokens = tokens
	}
}

// think sets how much the model reasons. Off is said in the model family's own way, and
// left out where a family has none: a parameter that a model does not know is refused.
func think(r *request, model string, level session.Thinking) {
	switch level {
	case "":
	case session.ThinkingOff:
		switch m := strings.ToLower(model); {
		case knowsNone.MatchString(m):
			r.ReasoningEffort = "none"
		case strings.Contains(m, "qwen"):
			r.EnableThinking = new(bool)
		case containsAny(m, "deepseek", "glm-", "mimo", "minimax", "kimi"):
			r.Thinking = &thinking{Type: "disabled"}
		}
	case session.ThinkingMinimal, session.ThinkingLow, session.ThinkingMedium,
		session.ThinkingHigh, session.ThinkingXHigh, session.ThinkingMax:
		r.ReasoningEffort = string(level)
	}
}

func containsAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
