package prompt

import (
	"slices"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// What things cost besides their text, in tokens.
const (
	imageTokens = 1600 // the most that a large picture costs with the usual providers
	itemTokens  = 4
	callTokens  = 8
	toolTokens  = 12
)

// Estimate returns about how many tokens a request with these parts has. It needs no
// tokenizer: it counts as those of today's models do on the average, one token for a short
// word or a CJK character, and rather too many than too few. The sum of two estimates is
// that of both, so items can be added up.
func Estimate(items []session.Item, system string, tools []provider.Tool) int {
	n := tokens(system)
	for _, t := range tools {
		n += toolTokens + tokens(t.Name) + tokens(t.Description) + tokens(string(t.Schema))
	}
	for _, it := range items {
		n += itemSize(it)
	}
	return n
}

// Used returns about how many tokens the request with these parts has, by what the provider
// counted last: the report of the newest complete answer, and an estimate of what came
// after it. Reports of items up to the one called after do not count, because the
// transcript was compacted there; "" lets all count. Without a report all is estimated.
func Used(items []session.Item, after session.ItemID, system string, tools []provider.Tool) int {
	n := 0
	for _, it := range slices.Backward(items) {
		if after != "" && it.ItemID() == after {
			break
		}
		a, ok := it.(*session.Assistant)
		if ok && a.Status == session.Complete && a.Usage != nil && a.Usage.Total() > 0 {
			return int(min(a.Usage.Total(), 1<<40)) + n
		}
		n += itemSize(it)
	}
	return Estimate(items, system, tools)
}

func itemSize(it session.Item) int {
	n := itemTokens
	switch it := it.(type) {
	case *session.User:
		n += blockSizes(it.Blocks)
	case *session.Assistant:
		n += blockSizes(it.Blocks)
	case *session.Tool:
		n += callTokens + tokens(it.Output) + imageTokens*len(it.Images)
	}
	return n
}

func blockSizes(blocks []session.Block) int {
	n := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			n += tokens(b.Text)
		case session.Reasoning:
			n += tokens(b.Text)
			if b.Redacted {
				n += len(b.Signature) / 4
			}
		case session.ToolCall:
			n += callTokens + tokens(b.Name) + tokens(b.Input)
		case session.Image:
			n += imageTokens
		}
	}
	return n
}

// tokens counts the tokens of a text. It counts halves, for scripts where two characters
// make a token.
func tokens(s string) int {
	halves := 0
	for i := 0; i < len(s); {
		from := i
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			halves += runeHalves(r)
			i += n
		case letter(c):
			i = run(s, i, upper)
			caps := i - from
			i = run(s, i, lower)
			halves += 2 * wordTokens(caps, i-from-caps)
		case digit(c):
			i = run(s, i, digit)
			halves += 2 * ((i - from + 2) / 3)
		case space(c):
			i = run(s, i, space)
			if i-from > 1 || c != ' ' { // one space belongs to the word behind it
				halves += 2 * (1 + (i-from)/16)
			}
		default:
			i = run(s, i, func(c byte) bool { return c == s[from] })
			if i-from > 2 { // a rule of dashes and the like
				halves += 2 * (1 + (i-from)/8)
				break
			}
			i = run(s, i, punct)
			halves += (i - from) + 1
		}
	}
	return (halves + 1) / 2
}

// wordTokens counts a word of caps capitals and then small letters. Capitals in a row, and
// words longer than most, are taken apart.
func wordTokens(caps, small int) int {
	n := 0
	if caps > 1 {
		n = (caps + 2) / 3
	} else {
		small += caps
	}
	switch {
	case small == 0:
		return n
	case small <= 8:
		return n + 1
	}
	return n + 1 + (small-8+4)/5
}

func runeHalves(r rune) int {
	switch {
	case cjk(r):
		return 2
	case r >= 0x1f000: // emoji and rare signs
		return 6
	case r >= 0x2000 && r < 0x2e80: // signs, boxes
		return 3
	case r >= 0x0600 && r < 0x0e00, r >= 0x0e80 && r < 0x2000: // Arabic, Indic and more
		return 2
	}
	return 1
}

// cjk reports Han, kana, Hangul and their punctuation.
func cjk(r rune) bool {
	return r >= 0x2e80 && r < 0xa4d0 || r >= 0xac00 && r < 0xd7b0 || r >= 0xf900 && r < 0xfb00 ||
		r >= 0xfe30 && r < 0xfe50 || r >= 0xff00 && r < 0xfff0 || r >= 0x20000 && r < 0x32000
}

func run(s string, i int, is func(byte) bool) int {
	for i < len(s) && is(s[i]) {
		i++
	}
	return i
}

func upper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func lower(c byte) bool  { return c >= 'a' && c <= 'z' }
func letter(c byte) bool { return upper(c) || lower(c) }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
func space(c byte) bool  { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
func punct(c byte) bool {
	return c < utf8.RuneSelf && !letter(c) && !digit(c) && !space(c)
}
