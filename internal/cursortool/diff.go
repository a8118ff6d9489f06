package cursortool

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is how many lines a diff shows around a change.
const diffContext = 3

// diffDepth bounds how often a range is cut further, and so the time for texts made to be slow.
const diffDepth = 32

// change says that lines [a, a+removed) became lines [b, b+added).
type change struct{ a, removed, b, added int }

// diff compares two texts by lines.
type diff struct {
	old, new []string
	changes  []change
}

func newDiff(before, after string) *diff {
	d := &diff{old: strings.SplitAfter(before, "\n"), new: strings.SplitAfter(after, "\n")}
	d.old, d.new = trimEmpty(d.old), trimEmpty(d.new)
	d.compare(0, len(d.old), 0, len(d.new), 0)
	return d
}

func trimEmpty(rows []string) []string {
	if n := len(rows) - 1; rows[n] == "" {
		return rows[:n]
	}
	return rows
}

// counts returns how many lines were added and removed.
func (d *diff) counts() (added, removed int32) {
	for _, c := range d.changes {
		added += int32(c.added)
		removed += int32(c.removed)
	}
	return added, removed
}

// compare finds the changes between two ranges: what they begin and end with alike is left out, and
// what remains is cut at lines that occur once on both sides (a patience diff).
func (d *diff) compare(a, aEnd, b, bEnd, depth int) {
	for a < aEnd && b < bEnd && d.old[a] == d.new[b] {
		a, b = a+1, b+1
	}
	for a < aEnd && b < bEnd && d.old[aEnd-1] == d.new[bEnd-1] {
		aEnd, bEnd = aEnd-1, bEnd-1
	}
	if a == aEnd && b == bEnd {
		return
	}
	var fixed [][2]int
	if depth < diffDepth {
		fixed = d.anchors(a, aEnd, b, bEnd)
	}
	if len(fixed) == 0 {
		d.changes = append(d.changes, change{a, aEnd - a, b, bEnd - b})
		return
	}
	for _, f := range fixed {
		d.compare(a, f[0], b, f[1], depth+1)
		a, b = f[0]+1, f[1]+1
	}
	d.compare(a, aEnd, b, bEnd, depth+1)
}

// anchors returns pairs of equal lines that are unique in both ranges, as many as are in the same
// order on both sides.
func (d *diff) anchors(a, aEnd, b, bEnd int) [][2]int {
	type seen struct{ inOld, inNew, at int }
	rows := make(map[string]*seen, aEnd-a)
	for _, row := range d.old[a:aEnd] {
		if rows[row] == nil {
			rows[row] = &seen{}
		}
		rows[row].inOld++
	}
	for i, row := range d.new[b:bEnd] {
		if s := rows[row]; s != nil {
			s.inNew++
			s.at = b + i
		}
	}
	var pairs [][2]int
	for i, row := range d.old[a:aEnd] {
		if s := rows[row]; s.inOld == 1 && s.inNew == 1 {
			pairs = append(pairs, [2]int{a + i, s.at})
		}
	}
	return rising(pairs)
}

// rising returns the longest part of pairs whose second numbers rise; the first ones do.
func rising(pairs [][2]int) [][2]int {
	var ends []int // ends[n] is the pair that a run of n+1 pairs can end with at the earliest
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, at int) int { return pairs[e][1] - at })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{i}, ends[min(n+1, len(ends)):]...)...)
	}
	if len(ends) == 0 {
		return nil
	}
	out := make([][2]int, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		out[n] = pairs[i]
	}
	return out
}

// unified returns the changes as a unified diff of a file, "" when there are none.
func (d *diff) unified(path string) string {
	if len(d.changes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", path, path)
	for i := 0; i < len(d.changes); {
		end := i + 1
		for end < len(d.changes) && d.changes[end].a-(d.changes[end-1].a+d.changes[end-1].removed) <= 2*diffContext {
			end++
		}
		d.hunk(&b, d.changes[i:end])
		i = end
	}
	return b.String()
}

// hunk writes changes that are close to each other.
func (d *diff) hunk(b *strings.Builder, changes []change) {
	head, last := changes[0], changes[len(changes)-1]
	lead := min(diffContext, head.a)
	from, to := head.a-lead, min(last.a+last.removed+diffContext, len(d.old))
	newFrom, newTo := head.b-lead, last.b+last.added+to-last.a-last.removed
	fmt.Fprintf(b, "@@ -%s +%s @@\n", lineRange(from, to), lineRange(newFrom, newTo))
	at := from
	for _, c := range changes {
		marked(b, ' ', d.old[at:c.a])
		marked(b, '-', d.old[c.a:c.a+c.removed])
		marked(b, '+', d.new[c.b:c.b+c.added])
		at = c.a + c.removed
	}
	marked(b, ' ', d.old[at:to])
}

func lineRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func marked(b *strings.Builder, mark byte, rows []string) {
	for _, row := range rows {
		b.WriteByte(mark)
		b.WriteString(row)
		if !strings.HasSuffix(row, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
