package cursortool

import (
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// parts puts a file together that a client does not send at once (W24).
type parts struct {
	text  strings.Builder
	rows  int // complete lines in text
	limit int // lines to ask for next
	reads int
	total int
	size  int64
}

// readParts begins to read in ranges. What came first is not used: where it was cut is not known.
func (e *editor) readParts(ok *agentv1.ReadSuccess) Step {
	e.parts = parts{limit: rangeLines, total: int(ok.GetTotalLines()), size: ok.GetFileSize()}
	if e.parts.size > maxEdit || e.parts.total < 1 {
		return e.elsewhere("it is too large to be sent")
	}
	return e.readNext()
}

func (e *editor) readNext() Step {
	p := &e.parts
	if p.reads++; p.reads > maxReads {
		return e.elsewhere("it takes too many requests to read it")
	}
	args := e.readArgs()
	args.Offset, args.Limit = new(int32(p.rows+1)), new(uint32(p.limit))
	return e.try(readWay(args, e.part))
}

// part takes one range.
func (e *editor) part(res *agentv1.ReadResult) Step {
	p, ok := &e.parts, res.GetSuccess()
	switch {
	case ok == nil && res.GetRejected() != nil:
		return e.refused(res.GetRejected().GetReason())
	case ok == nil:
		return e.failRead(res)
	case ok.GetTruncated():
		if p.limit == 1 {
			return e.elsewhere("it has a line that is too long to be sent")
		}
		p.limit /= 2
		return e.readNext()
	}
	return e.add(ok)
}

func (e *editor) add(ok *agentv1.ReadSuccess) Step {
	p, text := &e.parts, ok.GetContent()
	rows := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		rows++
	}
	if rows > p.limit || decorated(text, -1) {
		return e.elsewhere("the client does not send parts of it")
	}
	if rows < p.limit || p.rows+rows >= p.total {
		return e.whole(text)
	}
	p.text.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		p.text.WriteByte('\n') // the range ends before the line's end
	}
	if p.rows += rows; p.text.Len() > maxEdit {
		return e.elsewhere("it is too large to be sent")
	}
	return e.readNext()
}

// whole takes the last range. Whether the last line has an end only the file's size can tell, when
// the ranges come without.
func (e *editor) whole(text string) Step {
	p := &e.parts
	p.text.WriteString(text)
	content := p.text.String()
	candidates := []string{content}
	if !strings.HasSuffix(content, "\n") {
		candidates = append(candidates, content+"\n", content+"\r\n")
	}
	for _, c := range candidates {
		if int64(len(c)) == p.size || encoding(c, p.size) != nil {
			e.hint = encoding(c, p.size)
			return e.patch(c)
		}
	}
	return e.elsewhere("the parts that the client sends are not the whole file")
}
