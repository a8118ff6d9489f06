// Package transcript writes sessions for people and other programs, and reads those of pi.
//
//	session.State ─▶ Markdown, HTML    for people
//	             ├─▶ JSONLines         for programs; every field
//	             └─▶ WritePi           pi's session file, version 3
//	pi's session file ─▶ ReadPi ─▶ Imported: head, items, compaction
//
// Everything is a function of its arguments: the same state gives the same bytes. Images are
// in the blob store; those who call lend a function that reads or writes one.
package transcript

import (
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// Load returns the bytes of an image. An error, or a nil Load, leaves the image out.
type Load func(session.Image) ([]byte, error)

// load calls l and reports whether there are bytes.
func (l Load) load(img session.Image) ([]byte, bool) {
	if l == nil {
		return nil, false
	}
	data, err := l(img)
	return data, err == nil
}

// clock writes a time in milliseconds since 1970 as pi and JavaScript do.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func statusName(s session.Status) string {
	switch s {
	case session.Streaming:
		return "streaming"
	case session.Complete:
		return "complete"
	case session.Failed:
		return "failed"
	case session.Aborted:
		return "aborted"
	}
	return "unknown"
}
