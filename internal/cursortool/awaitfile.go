package cursortool

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// terminal is the reading of a terminal's file, again and again.
type terminal struct {
	path    string
	n       int  // the request that is under way, or the last one
	reading bool // request n is under way
	asked   time.Time
	from    int32 // the line to read from; the whole file unless it is positive
	last    *view // of the last reading
}

// poll begins to read the file of a shell that is not followed.
func (a *await) poll() Step {
	id := uint32(*a.in.Shell)
	path := terminalFile(a.env.Terminals, id)
	if b := a.env.Shells.byID[id]; b != nil && b.File != "" {
		path = b.File
	}
	if path == "" {
		return a.fail("AwaitShell error: there is no shell " + a.in.task() + " in the background any more, and it is not known where the client keeps its terminals.")
	}
	a.file = &terminal{path: path, n: a.requests, reading: true}
	return Step{Requests: []Request{a.read()}, Wake: tickNow}
}

func (a *await) read() Request {
	args := &agentv1.ReadArgs{Path: a.file.path, ToolCallId: string(a.call.ID)}
	if a.file.from > 0 {
		args.Offset = new(a.file.from)
	}
	a.requests++
	return Request{
		Message:  &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: args}},
		Patience: awaitRead,
	}
}

// pollAt reads again when it is time to, and ends the wait when it is over.
func (a *await) pollAt(now time.Time, over bool, wake time.Duration) Step {
	f := a.file
	switch {
	case f == nil: // it was followed until now
		return a.poll()
	case over && f.last != nil: // the first reading may end after the time
		return a.pollOver()
	case f.asked.IsZero():
		f.asked = now
	}
	if f.reading {
		return Step{Wake: wake}
	}
	if left := awaitPoll - now.Sub(f.asked); left > 0 {
		return Step{Wake: min(left, wake)}
	}
	f.n, f.reading, f.asked = a.requests, true, now
	return Step{Requests: []Request{a.read()}, Wake: wake}
}

// pollOver ends the wait with what was read last.
func (a *await) pollOver() Step {
	st := a.done(a.file.last)
	if a.file.reading {
		st.Abort = []int{a.file.n}
	}
	return st
}

// Result takes the terminal's file.
func (a *await) Result(n int, m *agentv1.ExecClientMessage) Step {
	if a.file == nil || !a.file.reading || n != a.file.n || m.GetMessage() == nil {
		return Step{}
	}
	a.file.reading = false
	res := m.GetReadResult()
	if res == nil {
		res = m.GetRedactedReadResult()
	}
	ok := res.GetSuccess()
	if ok == nil {
		return a.fail("AwaitShell error: the terminal of shell " + a.in.task() + " could not be read. " + brief(foreign(m)))
	}
	if ok.GetTruncated() {
		a.file.from = ok.GetTotalLines() - terminalLines
	}
	v := terminalView(ok.GetContent())
	v.file, v.printed = a.file.path, uint64(max(0, ok.GetFileSize()))
	if a.match != nil {
		v.find(a.match, v.output)
	}
	a.file.last = &v
	if v.ended || v.found != nil {
		return a.done(&v)
	}
	return Step{Wake: tickNow}
}

// Closed ends the wait: there is no other way to learn of the shell.
func (a *await) Closed(n int) Step {
	return a.Thrown(n, "the client returned nothing", false)
}

// Thrown ends the wait.
func (a *await) Thrown(n int, reason string, _ bool) Step {
	if a.file == nil || !a.file.reading || n != a.file.n {
		return Step{}
	}
	a.file.reading = false
	return a.fail("AwaitShell error: the terminal of shell " + a.in.task() + " could not be read" + because(reason) + ".")
}

// terminalLines is how many lines of a long file are read: its end.
const terminalLines = 400

// terminalView reads a terminal's file: the output, between a heading and, once the command has
// ended, a block of "name: value" lines below a line of dashes, with its exit code.
func terminalView(content string) view {
	content = clean(strings.ReplaceAll(content, "\r\n", "\n"))
	v := view{output: cutAfter(content, shellAwait)}
	m := terminalFoot.FindStringSubmatchIndex(cutAfter(content, 1<<10))
	if m == nil {
		return v
	}
	foot := cutAfter(content, 1<<10)[m[0]:]
	v.output = cutAfter(strings.TrimSuffix(content, foot), shellAwait)
	v.ended = true
	for line := range strings.Lines(foot) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "exit_code:")
		if !ok {
			continue
		}
		if code, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
			v.code = new(int32(code))
		}
	}
	return v
}

// terminalFoot is what stands at the end of the file once the command has ended.
var terminalFoot = regexp.MustCompile(`(?m)^---\n(?:[a-z_]+:.*\n)*exit_code:.*(?:\n[a-z_]+:.*)*(?:\n---)?\s*\z`)
