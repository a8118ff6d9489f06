package transcript

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits on a file that is read.
const (
	MaxImport      = 128 << 20 // bytes
	MaxImportLine  = 32 << 20  // bytes of one line, which may hold images
	MaxImportItems = 100_000   // entries
)

// Errors of ReadPi. Those of its reader come back as well.
var (
	ErrNotPi   = errors.New("not a session file of pi")
	ErrVersion = errors.New("a session file of a version that cannot be read; open it with pi once, which brings it to version 3")
	ErrTooBig  = errors.New("the session file is too large")
)

// piFile is a file as a tree.
type piFile struct {
	header  piHeader
	entries map[string]piEntry
	leaf    string // where the session is; "" before its first entry
	bad     int    // lines that are not entries
}

// readTree reads the lines of a file. A line that is not an entry, as a crash leaves one at
// the end, is counted and skipped; of two entries with one id the first counts.
func readTree(r io.Reader) (*piFile, error) {
	limited := &io.LimitedReader{R: r, N: MaxImport + 1}
	sc := bufio.NewScanner(limited)
	sc.Buffer(nil, MaxImportLine)
	f := &piFile{entries: map[string]piEntry{}}
	if err := f.readHeader(sc); err != nil {
		return nil, err
	}
	for sc.Scan() {
		if len(sc.Bytes()) == 0 {
			continue
		}
		if len(f.entries) == MaxImportItems {
			return nil, fmt.Errorf("%w: it has more than %d entries", ErrTooBig, MaxImportItems)
		}
		f.readEntry(sc.Bytes())
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooBig, MaxImport)
	}
	return f, scanError(sc)
}

func (f *piFile) readHeader(sc *bufio.Scanner) error {
	if !sc.Scan() {
		if err := scanError(sc); err != nil {
			return err
		}
		return fmt.Errorf("%w: it is empty", ErrNotPi)
	}
	if json.Unmarshal(sc.Bytes(), &f.header) != nil || f.header.Type != "session" {
		return fmt.Errorf("%w: its first line is no header", ErrNotPi)
	}
	if f.header.Version != piVersion {
		return fmt.Errorf("version %d: %w", f.header.Version, ErrVersion)
	}
	return nil
}

func scanError(sc *bufio.Scanner) error {
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: it has a line of more than %d bytes", ErrTooBig, MaxImportLine)
	}
	return sc.Err()
}

// readEntry takes an entry, which becomes the leaf, unless it says that another one is.
func (f *piFile) readEntry(line []byte) {
	var e piEntry
	if json.Unmarshal(line, &e) != nil || e.ID == "" || e.Type == "" {
		f.bad++
		return
	}
	if _, twice := f.entries[e.ID]; twice {
		f.bad++
		return
	}
	f.entries[e.ID] = e
	f.leaf = e.ID
	if e.Type == "leaf" {
		f.leaf = ""
		if e.TargetID != nil {
			f.leaf = *e.TargetID
		}
	}
}

// path returns the entries from the root to the leaf. It ends where a parent is missing, or
// would come twice.
func (f *piFile) path() []piEntry {
	var path []piEntry
	seen := map[string]bool{}
	for id := f.leaf; !seen[id]; {
		e, ok := f.entries[id]
		if !ok {
			break
		}
		seen[id] = true
		path = append(path, e)
		if e.ParentID == nil {
			break
		}
		id = *e.ParentID
	}
	slices.Reverse(path)
	return path
}
