package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/transcript"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
	"github.com/roost-dev/roost/proto/roost/v1/roostv1connect"
)

const (
	// maxFile bounds a session as a file, in bytes.
	maxFile = 60 << 20
	// formatPi is pi's session file, the one format that is read as well.
	formatPi = "pi"
)

// largeRequests lets an import have the size of a file, and a prompt that of its attachments,
// in JSON as well, where bytes take a third more.
func largeRequests(spec connect.Spec) []connecthttp.Option {
	limit := 0
	switch spec.Procedure {
	case roostv1connect.SessionServiceImportSessionProcedure:
		limit = maxFile
	case roostv1connect.SessionServicePromptProcedure:
		limit = maxAttached
	default:
		return nil
	}
	return []connecthttp.Option{connecthttp.WithReadMaxBytes(limit/3*4 + 64<<10)}
}

// ExportSession implements the method of the service.
func (s *Server) ExportSession(ctx context.Context, req *roostv1.ExportSessionRequest) (*roostv1.ExportSessionResponse, error) {
	state, err := s.opt.Engine.State(ctx, session.ID(req.SessionId))
	if err != nil {
		return nil, err
	}
	file := &file{ctx: ctx}
	load := func(i session.Image) ([]byte, error) { return s.opt.Blobs.Get(ctx, i.Blob) }
	switch req.Format {
	case "md":
		err = transcript.Markdown(file, state)
	case "html":
		err = transcript.HTML(file, state, load)
	case "jsonl":
		err = transcript.JSONLines(file, state)
	case formatPi:
		err = transcript.WritePi(file, state, transcript.PiOptions{Load: load})
	default:
		err = session.Errorf(session.Invalid, "unknown format %q; the formats are md, html, jsonl and pi", req.Format)
	}
	return &roostv1.ExportSessionResponse{Data: file.b.Bytes()}, err
}

// file is a file in the making, for as long as somebody waits for it.
type file struct {
	ctx context.Context
	b   bytes.Buffer
}

var errFile = session.Errorf(session.TooLarge, "as a file the session has more than %d MiB; the format md is the smallest", maxFile>>20)

// Write implements io.Writer.
func (f *file) Write(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	if f.b.Len()+len(p) > maxFile {
		return 0, errFile
	}
	return f.b.Write(p)
}

var _ io.Writer = (*file)(nil)

// ImportSession implements the method of the service.
func (s *Server) ImportSession(ctx context.Context, req *roostv1.ImportSessionRequest) (*roostv1.ImportSessionResponse, error) {
	if req.Format != formatPi {
		return nil, session.Errorf(session.Invalid, "format %q cannot be read; pi can", req.Format)
	}
	read, err := transcript.ReadPi(bytes.NewReader(req.Data), func(mime string, data []byte) (session.Image, error) {
		hash, err := s.opt.Blobs.Put(ctx, data)
		return session.Image{MIME: mime, Blob: hash, Size: int64(len(data))}, err
	})
	if err != nil {
		return nil, importError(err)
	}
	id, err := s.opt.Engine.Import(ctx, s.imported(req, read.Head), read.Items)
	if err != nil {
		return nil, err
	}
	head, at, err := s.head(ctx, id)
	w := &roostv1.ImportSessionResponse{Session: head, Position: at, Lost: make(map[string]uint32)}
	for what, n := range read.Lost {
		w.Lost[what] = uint32(n)
	}
	return w, err
}

func importError(err error) error {
	switch {
	case errors.Is(err, transcript.ErrNotPi), errors.Is(err, transcript.ErrVersion):
		return session.Errorf(session.Invalid, "%v", err)
	case errors.Is(err, transcript.ErrTooBig):
		return session.Errorf(session.TooLarge, "%v", err)
	}
	return err
}

// imported says what session to make of a file: as the file has it, unless the client wants
// something else or the server cannot.
func (s *Server) imported(req *roostv1.ImportSessionRequest, head session.Head) session.Create {
	c := session.Create{Cwd: head.Cwd, Name: head.Name, Origin: head.Origin}
	if req.Cwd != "" {
		c.Cwd = req.Cwd
	}
	if req.Name != "" {
		c.Name = req.Name
	}
	for _, m := range s.opt.Models() {
		if m.Ref == head.Model {
			c.Model = head.Model
			if slices.Contains(m.ThinkingLevels, head.Thinking) {
				c.Thinking = head.Thinking
			}
		}
	}
	return c
}
