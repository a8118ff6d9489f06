// Package permission decides whether a tool call may run, has to be asked for, or is refused.
// It is pure: a decision is a function of the policy, the call and what a person has granted,
// so it reads no file and no clock, and the same call is judged the same on every node.
//
//	call ─▶ pieces (commands, redirections, paths) ─▶ rules, else built-in knowledge ─▶ decision
//
// Everything in a call is data. Rule files, skills and the output of tools have no way to
// widen a policy: a Policy is made from the person's own configuration, and nothing here
// parses one out of anything else.
package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Action is what becomes of a call. The zero value counts as Ask, other unknown ones as Deny.
type Action uint8

// The actions, from the most permissive to the most restrictive.
const (
	Allow Action = iota + 1
	Ask
	Deny
)

var actionNames = map[Action]string{Allow: "allow", Ask: "ask", Deny: "deny"}

// String returns "allow", "ask" or "deny".
func (a Action) String() string { return actionNames[a.known()] }

// MarshalText writes the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the action's name.
func (a *Action) UnmarshalText(text []byte) error {
	for action, name := range actionNames {
		if name == string(text) {
			*a = action
			return nil
		}
	}
	return fmt.Errorf("unknown action %q; use allow, ask or deny", text)
}

func (a Action) known() Action {
	switch {
	case a == 0:
		return Ask
	case a > Deny:
		return Deny
	}
	return a
}

// Rule gives an action to the pieces of calls that it matches. All of its fields have to
// match; an empty one always does.
type Rule struct {
	Tool string // a name, or a glob as in mcp__github__*
	// Pattern is matched against each command of a bash call, word by word: a "*" on its own
	// stands for any words, at the end for none as well; within a word it stays in the word,
	// as "?" does, which is one character. There is no escape. For other tools it is a glob
	// on the main argument.
	Pattern string
	// Path is a doublestar glob on the paths that a piece touches, relative to the session's
	// directory, absolute, or below "~/". A rule that allows needs all paths to match, any
	// other rule one.
	Path   string
	Action Action
}

// Policy is what a person has decided for a session. It is not changed by judging, so it may
// be used by several goroutines.
type Policy struct {
	// Default is the action for what neither a rule nor the built-in knowledge decides.
	Default Action
	// Rules: a rule that denies wins wherever it stands; otherwise the last that matches wins.
	Rules []Rule
	// Trusted takes the built-in questions away: what is risky gets Default.
	Trusted bool
	// Home is what "~" stands for, absolute; "" when it is not known.
	Home string
}

// Call is a tool call to be judged.
type Call struct {
	Tool  string
	Input json.RawMessage
	Dir   string // the session's working directory, absolute
}

// Decision is the answer for a call: the most restrictive of its parts.
type Decision struct {
	Action Action
	Reason string // for a person; "" when the call is allowed
	Parts  []Part // at least one
	// Remember holds what has to be granted for the call to be allowed next time. It is nil
	// when nothing has to be, and when some part may not be granted beyond this once.
	Remember []string
}

// Part is one thing that was judged: a simple command, a redirection, an assignment, a path.
type Part struct {
	Text   string // as a person should see it: one line, without invisible characters
	Action Action
	Reason string // why, for a person; "" when it is allowed
	Rule   int    // the index of the deciding rule, or a value below
}

// Values of Part.Rule when no rule decided.
const (
	ByDefault = -1 // built-in knowledge or the policy's default
	ByGrant   = -2 // a person's grant
)

// Judge decides about a call. It always returns an action that String knows, for any input.
// A grant turns Ask into Allow, never Deny.
func (p *Policy) Judge(c Call, granted Grants) Decision {
	compiled := p.compile(c)
	d := Decision{Action: Allow}
	forgettable := false
	var reasons []string
	for _, piece := range p.pieces(c) {
		part, key := compiled.judge(&piece, granted)
		d.Parts = append(d.Parts, part)
		if part.Action != Allow {
			forgettable = forgettable || key == ""
			d.Remember = appendNew(d.Remember, key)
		}
		if part.Action > d.Action {
			d.Action, reasons = part.Action, nil
		}
		if part.Action != Allow && part.Action == d.Action {
			reasons = appendNew(reasons, shorten(part.Text)+": "+part.Reason)
		}
	}
	if d.Action != Ask || forgettable {
		d.Remember = nil
	}
	d.Reason = strings.Join(reasons, "; ")
	return d
}

func (p *Policy) pieces(c Call) []piece {
	in, err := readInput(c.Input)
	if err != nil {
		return []piece{{text: c.Tool, words: []word{literal(c.Tool), unknown(c.Tool)}, anyPath: true, risk: risky, why: err.Error()}}
	}
	where := place{dir: c.Dir, home: p.Home}
	if c.Tool == bashTool {
		return bashPieces(in, where)
	}
	return toolPieces(c.Tool, in, where)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// shorten keeps a reason readable; the whole text is in the part.
func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
