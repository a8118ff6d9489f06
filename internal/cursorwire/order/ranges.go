package order

import "slices"

// maxRanges bounds what is remembered of lost messages. Beyond it the oldest count as received.
const maxRanges = 64

// ranges are numbers that were given up for lost, ascending.
type ranges []span

type span struct{ from, to int64 }

func (r *ranges) add(from, to int64) {
	*r = append(*r, span{from, to})
	r.bound()
}

// remove reports whether n was there.
func (r *ranges) remove(n int64) bool {
	i := slices.IndexFunc(*r, func(s span) bool { return s.from <= n && n <= s.to })
	if i < 0 {
		return false
	}
	s := (*r)[i]
	var rest []span
	if s.from < n {
		rest = append(rest, span{s.from, n - 1})
	}
	if n < s.to {
		rest = append(rest, span{n + 1, s.to})
	}
	*r = slices.Replace(*r, i, i+1, rest...)
	r.bound()
	return true
}

func (r *ranges) bound() {
	if extra := len(*r) - maxRanges; extra > 0 {
		*r = slices.Delete(*r, 0, extra)
	}
}
