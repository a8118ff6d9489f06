package fstool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	chunk   = 64 << 10 // more than a line that can be shown
	sniffed = 8 << 10  // looked at to tell text from other files
	// Lines after those shown are counted so far, to say how many there are; a file of
	// gigabytes is not read to its end for that.
	counted = 256 << 20
)

func isBinary(start []byte) bool { return bytes.IndexByte(start, 0) >= 0 }

// window is what of a file was shown.
type window struct {
	head    tool.Head
	first   int   // number of the first line asked for
	total   int   // lines seen
	after   int64 // bytes seen after the last line shown
	more    bool  // there are lines after those counted
	tooLong bool  // the first line asked for is over the limit
}

// readLines reads the lines that were asked for and counts the others.
func readLines(r *bufio.Reader, in readParams) (string, error) {
	w := window{first: max(1, in.Offset)}
	full := false
	for {
		line, size, err := nextLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", unreadable(in.Path, err)
		}
		if size == 0 {
			break
		}
		w.total++
		if w.total < w.first {
			continue
		}
		if !full {
			full = in.Limit > 0 && w.head.Lines() == in.Limit || !w.add(line, size)
		}
		if full {
			if w.after += size; w.after > counted {
				w.more = true
				break
			}
		}
	}
	return w.text(in)
}

// add adds a line of which only line, its beginning, was kept; size is its whole length.
func (w *window) add(line []byte, size int64) bool {
	if size <= tool.MaxBytes+2 && w.head.Add(tool.Clean(string(line))) {
		return true
	}
	w.tooLong = w.head.Lines() == 0
	return false
}

func (w *window) text(in readParams) (string, error) {
	last := w.first + w.head.Lines() - 1
	total := fmt.Sprint(w.total)
	if w.more {
		total = "more than " + total
	}
	switch {
	case w.total == 0 && w.first == 1:
		return tool.Notice("", "The file is empty."), nil
	case w.total < w.first:
		return "", fmt.Errorf("offset %d is beyond the end of %s, which has %s", w.first, in.Path, count(w.total, "line"))
	case w.tooLong:
		return tool.Notice("", fmt.Sprintf("Line %d alone is over the limit of %s. Use bash: sed -n %dp FILE | head -c %d",
			w.first, tool.Size(tool.MaxBytes), w.first, tool.MaxBytes)), nil
	case last < w.total:
		return tool.Notice(w.head.String(), fmt.Sprintf("Showing lines %d-%d of %s. Use offset=%d to continue.", w.first, last, total, last+1)), nil
	}
	return w.head.String(), nil
}

// nextLine returns the beginning of the next line, without its end, and the length of the
// whole line in the file; 0 is the end of the file.
func nextLine(r *bufio.Reader) (line []byte, size int64, err error) {
	part, err := r.ReadSlice('\n')
	size = int64(len(part))
	for errors.Is(err, bufio.ErrBufferFull) {
		// The rest of a line that is too long to be shown is only counted.
		part, err = r.ReadSlice('\n')
		size += int64(len(part))
	}
	if size == int64(len(part)) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte{'\n'}), []byte{'\r'})
	}
	return line, size, err
}
