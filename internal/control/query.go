package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Sizes of pages, in sessions or items.
const (
	defaultPage = 100
	maxPage     = 1000
)

func pageSize(asked uint32) (int, error) {
	switch {
	case asked == 0:
		return defaultPage, nil
	case asked > maxPage:
		return 0, session.Errorf(session.Invalid, "a page has at most %d entries", maxPage)
	}
	return int(asked), nil
}

// GetServer implements the method of the service.
func (s *Server) GetServer(context.Context, *roostv1.GetServerRequest) (*roostv1.GetServerResponse, error) {
	w := &roostv1.GetServerResponse{Version: s.opt.Version, ServerId: s.opt.ServerID, Epoch: uint64(s.opt.Engine.Epoch())}
	if s.opt.DefaultModel != nil {
		if m := s.opt.DefaultModel(); !m.IsZero() {
			w.DefaultModel = m.String()
		}
	}
	return w, nil
}

// ListModels implements the method of the service.
func (s *Server) ListModels(context.Context, *roostv1.ListModelsRequest) (*roostv1.ListModelsResponse, error) {
	w := &roostv1.ListModelsResponse{}
	for _, m := range s.opt.Models() {
		w.Models = append(w.Models, controlview.Model(m))
	}
	return w, nil
}

// cursor is a place in the list of sessions: after those updated later than updated, and
// those updated at the same time with an id up to id.
type cursor struct {
	updated int64
	id      session.ID
}

func (c cursor) String() string { return fmt.Sprintf("%d-%s", c.updated, c.id) }

func parseCursor(token string) (cursor, error) {
	updated, id, _ := strings.Cut(token, "-")
	ms, err := strconv.ParseInt(updated, 10, 64)
	if err != nil || !session.ID(id).Valid() {
		return cursor{}, session.Errorf(session.Invalid, "page_token is not one that the server has given")
	}
	return cursor{updated: ms, id: session.ID(id)}, nil
}

func (c cursor) passed(m session.Meta) bool {
	return m.UpdatedAt < c.updated || m.UpdatedAt == c.updated && m.ID > c.id
}

// ListSessions implements the method of the service. A session that is updated between two
// pages may be missing from the second, and be seen on a new first page.
func (s *Server) ListSessions(ctx context.Context, req *roostv1.ListSessionsRequest) (*roostv1.ListSessionsResponse, error) {
	limit, err := pageSize(req.PageSize)
	if err != nil {
		return nil, err
	}
	var after cursor
	if req.PageToken != "" {
		if after, err = parseCursor(req.PageToken); err != nil {
			return nil, err
		}
	}
	w := &roostv1.ListSessionsResponse{}
	var last cursor
	for m, err := range s.opt.Engine.List(ctx) {
		if err != nil {
			return nil, err
		}
		if req.PageToken != "" && !after.passed(m) {
			continue
		}
		if len(w.Sessions) == limit {
			w.NextPageToken = last.String()
			break
		}
		w.Sessions = append(w.Sessions, controlview.Summary(m))
		last = cursor{updated: m.UpdatedAt, id: m.ID}
	}
	return w, nil
}

// GetSession implements the method of the service.
func (s *Server) GetSession(ctx context.Context, req *roostv1.GetSessionRequest) (*roostv1.GetSessionResponse, error) {
	limit, err := pageSize(req.PageSize)
	if err != nil {
		return nil, err
	}
	state, err := s.opt.Engine.State(ctx, session.ID(req.SessionId))
	if err != nil {
		return nil, err
	}
	items, first := controlview.Items(state, int(req.Before), limit)
	return &roostv1.GetSessionResponse{
		Session: controlview.Session(state), Position: s.position(state.Seq), Items: items, FirstIndex: uint32(first),
	}, nil
}

// hashLen is the length of a blob's name: hex SHA-256.
const hashLen = 64

// GetBlob implements the method of the service.
func (s *Server) GetBlob(ctx context.Context, req *roostv1.GetBlobRequest) (*roostv1.GetBlobResponse, error) {
	if len(req.Blob) != hashLen || strings.Trim(req.Blob, "0123456789abcdef") != "" {
		return nil, session.Errorf(session.Invalid, "a blob goes by %d hexadecimal digits in lower case", hashLen)
	}
	data, err := s.opt.Blobs.Get(ctx, req.Blob)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, session.Errorf(session.NotFound, "there is no such blob")
	}
	return &roostv1.GetBlobResponse{Data: data}, err
}
