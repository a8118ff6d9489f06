package cursortool

import (
	"fmt"
	"regexp"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// view is what is known of a background shell at one moment.
type view struct {
	ended   bool
	code    *int32 // nil when it is not known
	output  string // its end
	printed uint64 // bytes
	found   *string
	file    string
}

// find looks for the pattern; the output's end is all that is looked at.
func (v *view) find(pattern *regexp.Regexp, output string) {
	if loc := pattern.FindStringIndex(output); loc != nil {
		v.found = new(cutMiddle(output[loc[0]:loc[1]], 1<<10))
	}
}

// done ends the wait with what is known.
func (a *await) done(v *view) Step {
	var b strings.Builder
	waited := a.timer.passed().Milliseconds()
	switch {
	case v.ended && v.code != nil:
		fmt.Fprintf(&b, "Shell %s has ended. Exit code: %d", a.in.task(), *v.code)
	case v.ended:
		fmt.Fprintf(&b, "Shell %s has ended. Its exit code is not known", a.in.task())
	case v.found != nil:
		fmt.Fprintf(&b, "Shell %s still runs; its output matches the pattern: %s", a.in.task(), *v.found)
	case a.timer.after == 0:
		fmt.Fprintf(&b, "Shell %s still runs", a.in.task())
	default:
		fmt.Fprintf(&b, "Shell %s still runs after %d ms of waiting", a.in.task(), waited)
	}
	if v.file != "" {
		fmt.Fprintf(&b, "\nTerminal file: %s", v.file)
	}
	output := strings.TrimRight(cutAfter(v.output, awaitText), "\n")
	switch {
	case output == "":
		b.WriteString("\n(no output)")
	case v.printed > awaitText:
		b.WriteString("\nThe end of its output:\n" + output)
	default:
		b.WriteString("\nOutput:\n" + output)
	}
	return Step{Done: &Outcome{Text: b.String(), Card: a.in.card(a.result(v, uint64(waited)))}}
}

func (a *await) result(v *view, waited uint64) *agentv1.AwaitResult {
	reason := "timeout"
	switch {
	case v.ended:
		reason = "exit"
	case v.found != nil:
		reason = "pattern"
	}
	if v.ended {
		return &agentv1.AwaitResult{Result: &agentv1.AwaitResult_Complete{Complete: &agentv1.AwaitTaskComplete{
			TaskId: a.in.task(), RuntimeMs: waited, OutputFilePath: v.file, OutputLength: v.printed,
			RegexRequested: a.match != nil, RegexMatch: v.found, ExitCode: v.code, WakeReason: &reason,
		}}}
	}
	return &agentv1.AwaitResult{Result: &agentv1.AwaitResult_StillRunning{StillRunning: &agentv1.AwaitTaskStillRunning{
		TaskId: a.in.task(), RuntimeMs: waited, OutputFilePath: v.file, OutputLength: v.printed,
		RegexRequested: a.match != nil, RegexMatch: v.found, WakeReason: &reason,
	}}}
}
