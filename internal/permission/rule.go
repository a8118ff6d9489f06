package permission

import "slices"

// ruleset is a policy made ready for the pieces of one call.
type ruleset struct {
	policy *Policy
	rules  []readyRule
}

// readyRule is a rule for the call's tool.
type readyRule struct {
	Rule
	index   int
	pattern []rune // nil when the rule has none
	path    *pathPattern
}

func (p *Policy) compile(c Call) *ruleset {
	set := &ruleset{policy: p}
	for i, r := range p.Rules {
		if r.Tool != "" && !matches(wholePattern(r.Tool), []rune(c.Tool), false) {
			continue
		}
		ready := readyRule{Rule: r, index: i}
		ready.Action = r.Action.known()
		if r.Pattern != "" && c.Tool == bashTool {
			ready.pattern = wordPattern(r.Pattern)
		} else if r.Pattern != "" {
			ready.pattern = wholePattern(r.Pattern)
		}
		if r.Path != "" {
			ready.path = newPathPattern(r.Path, place{dir: c.Dir, home: p.Home})
		}
		set.rules = append(set.rules, ready)
	}
	return set
}

// judge decides about one piece and returns what has to be granted if it is not allowed, or
// "" when that is not possible.
func (s *ruleset) judge(p *piece, granted Grants) (Part, string) {
	found, doubt := s.find(p)
	part := Part{Text: p.text, Rule: ByDefault}
	exact, prefix := p.exact, p.prefix
	switch {
	case found != nil:
		part.Action, part.Rule, part.Reason = found.Action, found.index, "a rule says "+found.Action.String()
		if found.pattern != nil || found.path != nil {
			prefix = "" // who asks about this in particular is not answered by a wider grant
		}
	default:
		part.Action, part.Reason = s.builtin(p)
	}
	if p.unread && doubt != nil && doubt.Action == Deny {
		part.Action, part.Rule = Deny, doubt.index
		part.Reason = p.why + ", so it may be what a rule denies"
		return part, ""
	}
	if doubt != nil && part.Action < Ask {
		part.Action, part.Rule = Ask, doubt.index
		part.Reason = "it may be what a rule says " + doubt.Action.String() + " to, which only running it would tell"
		return part, ""
	}
	if part.Action == Ask && doubt == nil && (granted.has(exact) || granted.has(prefix)) {
		part.Action, part.Rule = Allow, ByGrant
	}
	if part.Action == Allow {
		part.Reason = ""
	}
	switch {
	case doubt != nil:
		return part, ""
	case prefix != "":
		return part, prefix
	}
	return part, exact
}

// find returns the rule that decides about a piece, and a rule that asks or denies and may
// match as well.
func (s *ruleset) find(p *piece) (found, doubt *readyRule) {
	for i := range s.rules {
		r := &s.rules[i]
		switch r.match(p) {
		case yes:
			if found == nil || found.Action != Deny || r.Action == Deny {
				found = r
			}
		case maybe:
			if doubt == nil || r.Action == Deny {
				doubt = r
			}
		case no:
		}
	}
	if found != nil && doubt != nil && doubt.Action == Ask && doubt.index < found.index {
		doubt = nil // the later rule would win even if both matched
	}
	if p.opaque && doubt == nil && (found == nil || !found.named()) {
		// What can run anything can run what some rule is about; only a rule that names the
		// program has that in mind.
		i := slices.IndexFunc(s.rules, func(r readyRule) bool { return r.Action != Allow && (r.pattern != nil || r.path != nil) })
		if i >= 0 {
			doubt = &s.rules[i]
		}
	}
	return found, doubt
}

func (s *ruleset) builtin(p *piece) (Action, string) {
	otherwise := s.policy.Default.known()
	switch {
	case p.risk == harmless:
		return Allow, ""
	case p.risk == risky && !s.policy.Trusted:
		return max(Ask, otherwise), p.why
	case p.risk == risky:
		return otherwise, p.why
	}
	return otherwise, "nothing allows it beforehand"
}

func (r *readyRule) match(p *piece) answer {
	if r.Action == Allow {
		if r.pattern != nil && !p.allowedBy(r.pattern) || r.path != nil && !r.path.all(p) {
			return no
		}
		return yes
	}
	result := yes
	if r.pattern != nil {
		result = p.caughtBy(r.pattern)
	}
	if r.path != nil {
		result = min(result, r.path.some(p))
	}
	return result
}

// named tells whether the rule says which program it is about.
func (r *readyRule) named() bool {
	return len(r.pattern) > 0 && r.pattern[0] != many && r.pattern[0] != '*'
}
