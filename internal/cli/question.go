package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Limits of what is shown of a question, in characters. Who says yes should have seen it all.
const (
	shownQuestion = 4000
	shownReason   = 500
)

// question says what is asked, a line each.
func question(t *terminal, i *roostv1.Item) []string {
	tool := i.GetTool()
	input := legible(tool.GetInput())
	lines := []string{t.style(yellow, "? "+t.line(tool.GetName(), shownInput)) + " " + t.line(input, shownQuestion)}
	if n := len([]rune(input)) - shownQuestion; n > 0 {
		lines = append(lines, t.style(red, fmt.Sprintf("  the input goes on for about %d characters that are not shown", n)))
	}
	if why := t.line(tool.GetQuery().GetReason(), shownReason); why != "" {
		lines = append(lines, "  "+why)
	}
	return lines
}

// legible writes a JSON text without escapes that only hide what it says.
func legible(input string) string {
	var v any
	in := json.NewDecoder(strings.NewReader(input))
	in.UseNumber()
	if in.Decode(&v) != nil {
		return input
	}
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if out.Encode(v) != nil {
		return input
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// keys says what may be answered, a line each.
func keys(t *terminal, q *roostv1.Query) []string {
	lines := []string{"  y  allow it this once"}
	if len(q.GetGrants()) > 0 {
		grants := t.line(strings.Join(q.Grants, ", "), shownReason)
		lines = append(lines, "  s  allow for this session: "+grants, "  a  allow always: "+grants)
	}
	return append(lines, "  n  do not allow it; the model is told what you write behind the n")
}

// elsewhere says how somebody else may answer.
func elsewhere(t *terminal, session, call string) string {
	return t.style(dim, "  answer it with: roost sessions answer "+t.line(session, shownInput)+" "+t.line(call, shownInput)+" allow|deny")
}

// parseAnswer reads what a person has typed: a key, and behind an n perhaps a reason. It
// reports false for anything else, and for a key that the question does not offer.
func parseAnswer(line string, q *roostv1.Query) (*roostv1.AnswerRequest, bool) {
	key, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	reason = strings.TrimSpace(reason)
	key = strings.ToLower(key)
	scope := map[string]roostv1.Scope{
		"y": roostv1.Scope_SCOPE_ONCE, "s": roostv1.Scope_SCOPE_SESSION, "a": roostv1.Scope_SCOPE_ALWAYS,
	}[key]
	switch {
	case key == "n":
		return &roostv1.AnswerRequest{Reason: reason}, true
	case scope == roostv1.Scope_SCOPE_UNSPECIFIED, reason != "":
		return nil, false
	case scope != roostv1.Scope_SCOPE_ONCE && len(q.GetGrants()) == 0:
		return nil, false
	}
	return &roostv1.AnswerRequest{Allow: true, Scope: scope}, true
}
