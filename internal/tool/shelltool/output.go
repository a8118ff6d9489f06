package shelltool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	keep     = 2 * tool.MaxBytes // of the end, at least, is in memory
	maxSpill = 64 << 20          // bytes of output in the file; the rest is dropped
)

var errSpillFull = errors.New("the output is longer than the " + tool.Size(maxSpill) + " that are kept")

// output collects what a command prints: its end in memory, and all of it in a file as soon
// as it is too long to be returned. It is safe for concurrent use.
type output struct {
	dir string

	mu       sync.Mutex
	tail     []byte   // the last bytes; everything while there is no file
	total    int64    // bytes printed
	ends     int      // line ends printed
	file     *os.File // nil until the output is too long
	spilled  int64    // bytes in the file
	spillErr error    // why the file does not have everything, or does not exist
}

func newOutput(dir string) *output { return &output{dir: dir} }

// Write never fails: a full disk must not end the command.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	o.total += int64(len(p))
	o.ends += bytes.Count(p, []byte{'\n'})
	if o.file != nil || o.spillErr != nil {
		o.spill(p)
	} else if o.total > tool.MaxBytes || o.ends > tool.MaxLines {
		o.open()
	}
	if len(o.tail) > 2*keep {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keep:]...)
	}
	return len(p), nil
}

// open starts the file while everything is still in memory.
func (o *output) open() {
	if o.file, o.spillErr = os.CreateTemp(o.dir, "bash-*.log"); o.spillErr == nil {
		o.spill(o.tail)
	}
}

func (o *output) spill(p []byte) {
	if o.spillErr != nil {
		return
	}
	if room := maxSpill - o.spilled; int64(len(p)) > room {
		p, o.spillErr = p[:room], errSpillFull
	}
	n, err := o.file.Write(p)
	o.spilled += int64(n)
	if err != nil {
		o.spillErr = err
	}
}

// printed returns how much was printed, and a copy of its end if that is not n.
func (o *output) printed(n int64) (tail []byte, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total == n {
		return nil, n
	}
	return bytes.Clone(o.tail), o.total
}

// close returns the text for the result and the path of the file, which is "" when the text
// is everything or no file could be made. Nothing is written afterwards.
func (o *output) close() (text, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := tool.Clean(string(o.tail))
	text, lines, partial := tool.Tail(all)
	cut := partial || len(text) < len(all)-1 || o.file != nil || o.spillErr != nil
	if !cut {
		return text, ""
	}
	if o.file == nil && o.spillErr == nil {
		o.open() // only in its clean form the output is too long
	}
	where := ""
	if o.file != nil {
		path = o.file.Name()
		where = "Full output: " + path
		if err := o.file.Close(); err != nil && o.spillErr == nil {
			o.spillErr = err
		}
	}
	return tool.Notice(text, o.shown(text, lines, partial)+o.kept(where)), path
}

// shown tells which part of the output the text is.
func (o *output) shown(text string, lines int, partial bool) string {
	total := o.ends
	if len(o.tail) > 0 && o.tail[len(o.tail)-1] != '\n' {
		total++
	}
	if partial {
		return fmt.Sprintf("Showing the last %s of line %d, the last.", tool.Size(int64(len(text))), total)
	}
	return fmt.Sprintf("Showing lines %d-%d of %d.", total-lines+1, total, total)
}

// kept tells where the rest is.
func (o *output) kept(where string) string {
	switch {
	case o.spillErr == nil:
		return " " + where
	case o.file == nil:
		return " The rest could not be kept: " + o.spillErr.Error()
	default:
		return fmt.Sprintf(" %s (only its first %s: %v)", where, tool.Size(o.spilled), o.spillErr)
	}
}
