package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// row is a line of the result.
type row struct {
	measure, budget, roost, direct, verdict string
}

// figure is a number with its unit, and what it is compared with.
type figure struct {
	value float64
	unit  string
	peer  string // the same of a direct connection, or empty
}

func (f figure) String() string { return number(f.value) + suffix(f.unit) }

// atMost makes the row of a figure that has an upper limit.
func atMost(measure string, limit float64, f figure) row {
	return judge(measure, "≤ "+number(limit)+suffix(f.unit), f, f.value <= limit)
}

// atLeast makes the row of a figure that has a lower limit.
func atLeast(measure string, limit float64, f figure) row {
	return judge(measure, "≥ "+number(limit)+suffix(f.unit), f, f.value >= limit)
}

// noLimit makes the row of a figure that explains another one.
func noLimit(measure string, f figure) row {
	return row{measure: measure, budget: "–", roost: f.String(), direct: orDash(f.peer), verdict: "–"}
}

func judge(measure, budget string, f figure, ok bool) row {
	verdict := "ok"
	if !ok {
		verdict = "**over**"
	}
	return row{measure: measure, budget: budget, roost: f.String(), direct: orDash(f.peer), verdict: verdict}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func suffix(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// number writes a value with as many digits as it is worth.
func number(v float64) string {
	switch abs := max(v, -v); {
	case abs >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 10:
		return trimmed(v, 1)
	}
	return trimmed(v, 2)
}

func trimmed(v float64, digits int) string {
	s := strings.TrimRight(strconv.FormatFloat(v, 'f', digits, 64), "0")
	if s = strings.TrimSuffix(s, "."); s == "-0" {
		return "0"
	}
	return s
}

// header begins a Markdown table; write adds lines to it, so that a long measurement shows
// what it has so far.
func header(out io.Writer) {
	fmt.Fprintln(out, "| measure | budget | roost | direct | verdict |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
}

func write(out io.Writer, rows []row) {
	for _, r := range rows {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", r.measure, r.budget, r.roost, r.direct, r.verdict)
	}
}
