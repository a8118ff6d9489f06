package anthropic

import (
	"regexp"
	"strconv"

	"github.com/roost-dev/roost/internal/session"
)

const (
	defaultMaxTokens = 8192 // the dialect demands a limit; every model allows this one
	minBudget        = 1024 // the smallest thinking budget that the API takes
	answerRoom       = 1024 // tokens kept for the answer behind the thinking
)

// budgets are the tokens of thinking per level, for models without adaptive thinking.
var budgets = map[session.Thinking]int{
	session.ThinkingMinimal: 1024,
	session.ThinkingLow:     4096,
	session.ThinkingMedium:  10240,
	session.ThinkingHigh:    20480,
	session.ThinkingXHigh:   32768,
	session.ThinkingMax:     49152,
}

// claude finds the version in a model's name: claude-opus-4-6, anthropic/claude-sonnet-5.
// The date that may follow has eight digits and is no minor version.
var claude = regexp.MustCompile(`claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?:[^\d]|$)`)

// adaptive reports whether a model decides itself how much it thinks, from 4.6 on. Such
// models refuse budgets, and older ones refuse to do without.
func adaptive(model string) bool {
	m := claude.FindStringSubmatch(model)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // digits, by the pattern
	minor, _ := strconv.Atoi(m[2]) // "" is 0
	return major > 4 || major == 4 && minor >= 6
}

// think sets how much the model reasons. Off is said by saying nothing, because some
// models refuse to be told. Thinking is asked for as a summary, which newer models leave
// out otherwise.
func (r *request) think(level session.Thinking) {
	if level == "" || level == session.ThinkingOff {
		return
	}
	if adaptive(r.Model) {
		effort := string(level)
		if level == session.ThinkingMinimal {
			effort = string(session.ThinkingLow)
		}
		r.Thinking = &thinking{Type: "adaptive", Display: "summarized"}
		r.OutputConfig = &outputConfig{Effort: effort}
		return
	}
	budget := min(budgets[level], r.MaxTokens-answerRoom)
	if budget < minBudget || r.toolsWithoutThinking() {
		return
	}
	r.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
}

// toolsWithoutThinking reports whether the model is in the middle of using tools without
// having thought before, as after a change of model. With a budget the API refuses that.
func (r *request) toolsWithoutThinking() bool {
	for i := len(r.Messages) - 1; i > 0; i-- {
		switch first := r.Messages[i].Content[0].Type; {
		case r.Messages[i].Role == "assistant":
			return first != "thinking" && first != "redacted_thinking"
		case first != "tool_result":
			return false
		}
	}
	return false
}
