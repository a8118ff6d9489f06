package cursor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const pathUpload = agentService + "UploadConversationBlobs"

// upload takes blobs of a conversation (section 6.5). Few at once, because they are large and have to
// be in memory; the others wait.
func (c *calls) upload(w http.ResponseWriter, r *http.Request) {
	select {
	case c.uploads <- struct{}{}:
		defer func() { <-c.uploads }()
	case <-r.Context().Done():
		return
	}
	c.unary(cursorwire.MaxMessage, c.storeBlobs)(w, r)
}

// storeBlobs keeps blobs by the hash of their content, so it must be the id that they come with:
// nothing is stored if one is another. Twice the same is once.
func (c *calls) storeBlobs(ctx context.Context, r unaryRequest) ([]byte, error) {
	m := new(agentv1.UploadConversationBlobsRequest)
	if err := r.decode(m); err != nil {
		return nil, err
	}
	for i, b := range m.GetBlobs() {
		if id, ok := cursorwire.ParseBlobID(b.GetId()); !ok || id != cursorwire.BlobIDOf(b.GetValue()) {
			return nil, cursorwire.NewError(cursorwire.InvalidArgument, fmt.Sprintf("the id of blob %d is not the SHA-256 of its value", i))
		}
	}
	for _, b := range m.GetBlobs() {
		if _, err := c.opt.Blobs.Put(ctx, b.GetValue()); err != nil {
			return nil, fmt.Errorf("store blob: %w", err)
		}
	}
	return r.message(new(agentv1.UploadConversationBlobsResponse))
}

// clone makes a conversation from the history of another (section 6.8).
func (c *calls) clone(ctx context.Context, r unaryRequest) ([]byte, error) {
	m := new(agentv1.NotifyConversationCloneRequest)
	if err := r.decode(m); err != nil {
		return nil, err
	}
	if err := conversations(m.GetConversationId(), m.GetSourceConversationId()); err != nil {
		return nil, err
	}
	if c.opt.Clone != nil {
		if err := c.opt.Clone(ctx, m.GetSourceConversationId(), m.GetConversationId()); err != nil && !isUnknown(err) {
			return nil, fmt.Errorf("clone conversation: %w", err)
		}
	}
	return r.message(new(agentv1.NotifyConversationCloneResponse))
}

// metadata takes the name that a client gives a conversation. One that has not run yet is not known
// here, and has nothing to be named.
func (c *calls) metadata(ctx context.Context, r unaryRequest) ([]byte, error) {
	m := new(agentv1.UpdateConversationMetadataRequest)
	if err := r.decode(m); err != nil {
		return nil, err
	}
	if err := conversations(m.GetConversationId()); err != nil {
		return nil, err
	}
	c.rename(ctx, m)
	return r.message(new(agentv1.UpdateConversationMetadataResponse))
}

// rename does what a client says of a name. It is an ornament: the client need not hear that it was
// lost.
func (c *calls) rename(ctx context.Context, m *agentv1.UpdateConversationMetadataRequest) {
	id, name := m.GetConversationId(), oneLine(m.GetName(), maxTitle)
	if name == "" || c.opt.Rename == nil {
		return
	}
	if m.GetOnlySetNameIfEmpty() && c.opt.Named != nil && c.opt.Named(ctx, id) {
		return
	}
	if err := c.opt.Rename(ctx, id, name); err != nil && !isUnknown(err) {
		c.log.Warn("conversation not renamed", slog.String("conversation", id), slog.Any("error", err))
	}
}

// conversations refuses what cannot be the id of a conversation.
func conversations(ids ...string) error {
	for _, id := range ids {
		if !cursorwire.ValidConversationID(id) {
			return cursorwire.NewError(cursorwire.InvalidArgument, "a conversation_id is 1 to 128 letters, digits, - and _")
		}
	}
	return nil
}

// isUnknown reports whether an error says that there is no such conversation.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*session.Error](err)
	return ok && e.Kind == session.NotFound
}

// oneLine returns the first line of s that says something, at most limit runes.
func oneLine(s string, limit int) string {
	for line := range strings.Lines(strings.ToValidUTF8(s, "")) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if r := []rune(line); len(r) > limit {
			line = string(r[:limit])
		}
		return strings.TrimSpace(line)
	}
	return ""
}
