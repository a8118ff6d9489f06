package openaichat

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/internal/provider"
)

const (
	openTag  = "<think>"
	closeTag = "</think>"
	maxHeld  = 1 << 10 // bytes of blanks before a tag
)

// speech tells text and reasoning apart. Reasoning comes in fields of its own, or in a tag
// at the very start of the text, which may be split between chunks anywhere.
type speech struct {
	tag      tagState
	held     string // the beginning of what may become a tag
	thinking string // how the open reasoning block came; "" while none is open
	details  []*openDetail
}

// openDetail gathers the pieces of one detail.
type openDetail struct {
	detail
	text, summary strings.Builder
}

func (o *openDetail) add(r detail) {
	o.text.WriteString(r.Text)
	o.summary.WriteString(r.Summary)
	o.Signature += r.Signature
}

func (o *openDetail) whole() detail {
	d := o.detail
	d.Text, d.Summary = o.text.String(), o.summary.String()
	return d
}

type tagState uint8

const (
	mayOpen  tagState = iota // nothing but blanks so far
	inside                   // between the tags
	afterTag                 // behind the closing tag, before the first visible character
	noTag                    // plain text to the end
)

// content takes a piece of the content field.
func (s *speech) content(piece string, parts []provider.Part) []provider.Part {
	if piece == "" {
		return parts
	}
	if s.tag == noTag {
		return s.text(piece, parts)
	}
	piece = s.held + piece
	s.held = ""
	if s.tag == mayOpen {
		rest := strings.TrimLeftFunc(piece, unicode.IsSpace)
		switch {
		case strings.HasPrefix(rest, openTag):
			s.tag, piece = inside, rest[len(openTag):]
		case strings.HasPrefix(openTag, rest) && len(piece) <= maxHeld: // blank, or the first half of the tag
			s.held = piece
			return parts
		default:
			s.tag = noTag
			return s.text(piece, parts)
		}
	}
	if s.tag == inside {
		piece, parts = s.insideTag(piece, parts)
	}
	if s.tag == afterTag {
		if piece = strings.TrimLeftFunc(piece, unicode.IsSpace); piece != "" {
			s.tag = noTag
			parts = s.text(piece, parts)
		}
	}
	return parts
}

// insideTag takes a piece of tagged reasoning and returns what follows the closing tag.
func (s *speech) insideTag(piece string, parts []provider.Part) (string, []provider.Part) {
	before, after, closed := strings.Cut(piece, closeTag)
	if closed {
		s.tag = afterTag
		parts = s.reasoning(before, viaTag, parts)
		return after, s.end(parts)
	}
	n := len(piece) - overlap(piece, closeTag)
	s.held = piece[n:]
	return "", s.reasoning(piece[:n], viaTag, parts)
}

// overlap returns how many bytes at the end of s may begin tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}

func (s *speech) text(piece string, parts []provider.Part) []provider.Part {
	parts = s.endReasoning(parts)
	return append(parts, provider.Part{Kind: provider.TextDelta, Text: piece})
}

func (s *speech) reasoning(piece, via string, parts []provider.Part) []provider.Part {
	if piece == "" {
		return parts
	}
	s.thinking = via
	return append(parts, provider.Part{Kind: provider.ReasoningDelta, Text: piece})
}

// detailed takes OpenRouter's two forms of the same reasoning: a text to show, and details
// to send back.
func (s *speech) detailed(d delta, parts []provider.Part) []provider.Part {
	var shown strings.Builder
	shown.WriteString(d.Reasoning)
	for _, r := range d.ReasoningDetails {
		if d.Reasoning == "" {
			shown.WriteString(r.Text + r.Summary)
		}
		s.addDetail(r)
	}
	return s.reasoning(shown.String(), viaReasoning, parts)
}

func (s *speech) addDetail(r detail) {
	if r.Type == "" {
		return
	}
	if n := len(s.details) - 1; n >= 0 && r.Type != "reasoning.encrypted" && sameBlock(s.details[n].detail, r) {
		s.details[n].add(r)
		return
	}
	o := &openDetail{detail: r}
	o.Signature = ""
	o.add(r)
	s.details = append(s.details, o)
}

func sameBlock(a, b detail) bool {
	if a.Type != b.Type || b.ID != "" && a.ID != b.ID {
		return false
	}
	return a.Index == nil && b.Index == nil || a.Index != nil && b.Index != nil && *a.Index == *b.Index
}

// endReasoning closes the open reasoning block, if any.
func (s *speech) endReasoning(parts []provider.Part) []provider.Part {
	if s.thinking == "" && len(s.details) == 0 {
		return parts
	}
	end := provider.Part{Kind: provider.ReasoningEnd, Signature: s.thinking}
	if len(s.details) > 0 {
		details := make([]detail, len(s.details))
		for i, o := range s.details {
			details[i] = o.whole()
		}
		if list, err := json.Marshal(details); err == nil { // strings and numbers always encode
			end.Signature = string(list)
		}
		end.Redacted = s.thinking == "" // nothing was shown: all of it is encrypted
	}
	s.thinking, s.details = "", nil
	return append(parts, end)
}

// end gives what is held back and closes the open block: a call follows, or the end.
func (s *speech) end(parts []provider.Part) []provider.Part {
	held := s.held
	s.held = ""
	switch {
	case s.tag == inside:
		parts = s.reasoning(held, viaTag, parts)
		s.tag = noTag
	case strings.TrimSpace(held) != "":
		s.tag = noTag
		parts = s.text(held, parts)
	}
	return s.endReasoning(parts)
}
