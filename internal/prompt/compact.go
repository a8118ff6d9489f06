package prompt

import (
	"github.com/roost-dev/roost/internal/session"
)

// OldOutput is what is left of a shortened output, in characters.
const OldOutput = 500

// fromPerson reports whether an item is a message that a person wrote.
func fromPerson(it session.Item) bool {
	u, ok := it.(*session.User)
	return ok && !isNote(u)
}

// Cut returns where to cut items so that about keepTokens of the newest are kept: the index
// of the first that is, which is never between a call and its result. The newest message of
// the user counts as kept even when it lies before the cut, because [Build] sends it word
// for word. The last answer with its results is kept whatever its size. 0 means that there
// is nothing to cut off.
func Cut(items []session.Item, keepTokens int) int {
	torn := tears(items)
	best, size := 0, 0
	for i := len(items) - 1; i > 0; i-- {
		size += itemSize(items[i])
		if torn[i] {
			continue
		}
		if best > 0 && size > keepTokens {
			return best
		}
		best = i
	}
	if len(items) > 0 && size+itemSize(items[0]) <= keepTokens {
		return 0
	}
	return best
}

// tears says of each index whether a cut there would part a result from its call.
func tears(items []session.Item) []bool {
	calls := make(map[session.CallID]int)
	open := make([]int, len(items)+1) // how many pairs begin to be open, less those that end
	for i, it := range items {
		switch it := it.(type) {
		case *session.Assistant:
			for _, c := range it.Calls() {
				calls[c.Call] = i
			}
		case *session.Tool:
			if at, ok := calls[it.Call]; ok {
				open[at+1]++
				open[i+1]--
			}
		case *session.User:
		}
	}
	torn := make([]bool, len(items))
	n := 0
	for i := range items {
		n += open[i]
		torn[i] = n > 0
	}
	return torn
}
