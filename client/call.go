package client

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	mathrand "math/rand/v2"
	"slices"
	"time"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// call makes one call and gives its error a type.
func call[Req, Res any](ctx context.Context, f func(context.Context, *Req) (*Res, error), req *Req) (*Res, error) {
	res, err := f(ctx, req)
	if err != nil {
		return nil, typed(ctx, err)
	}
	return res, nil
}

// Server says who answers.
func (c *Client) Server(ctx context.Context) (*roostv1.GetServerResponse, error) {
	return call(ctx, c.service.GetServer, &roostv1.GetServerRequest{})
}

// Models lists the models on offer.
func (c *Client) Models(ctx context.Context) ([]*roostv1.Model, error) {
	res, err := call(ctx, c.service.ListModels, &roostv1.ListModelsRequest{})
	return res.GetModels(), err
}

// Sessions yields every session, the most recently updated first. It asks for pages as they
// are needed and ends with the first error.
func (c *Client) Sessions(ctx context.Context) iter.Seq2[*roostv1.SessionSummary, error] {
	return func(yield func(*roostv1.SessionSummary, error) bool) {
		for token := ""; ; {
			page, err := call(ctx, c.service.ListSessions, &roostv1.ListSessionsRequest{PageToken: token})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range page.Sessions {
				if !yield(s, nil) {
					return
				}
			}
			if token = page.NextPageToken; token == "" {
				return
			}
		}
	}
}

// Session returns a session and a page of its transcript: the newest items, or those before
// the index before when it is not 0.
func (c *Client) Session(ctx context.Context, id string, before, pageSize uint32) (*roostv1.GetSessionResponse, error) {
	return call(ctx, c.service.GetSession, &roostv1.GetSessionRequest{SessionId: id, Before: before, PageSize: pageSize})
}

// Transcript returns a session with its whole transcript.
func (c *Client) Transcript(ctx context.Context, id string) (*roostv1.Session, []*roostv1.Item, error) {
	page, err := c.Session(ctx, id, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	head, pages := page.Session, [][]*roostv1.Item{page.Items}
	for page.FirstIndex > 0 {
		if page, err = c.Session(ctx, id, page.FirstIndex, 0); err != nil {
			return nil, nil, err
		}
		pages = append(pages, page.Items)
	}
	var items []*roostv1.Item
	for _, p := range slices.Backward(pages) {
		items = append(items, p...)
	}
	return head, items, nil
}

// Create makes a session. It is not repeated by itself: what is unknown after a lost
// connection would be made twice.
func (c *Client) Create(ctx context.Context, req *roostv1.CreateSessionRequest) (*roostv1.CreateSessionResponse, error) {
	return call(ctx, c.service.CreateSession, req)
}

// Rename gives a session a name.
func (c *Client) Rename(ctx context.Context, id, name string) error {
	_, err := call(ctx, c.service.RenameSession, &roostv1.RenameSessionRequest{SessionId: id, Name: name})
	return err
}

// Delete removes a session for ever.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := call(ctx, c.service.DeleteSession, &roostv1.DeleteSessionRequest{SessionId: id})
	return err
}

// Prompt starts a run. When the server cannot be reached or the answer is lost, it asks again
// under the same id, which starts at most one run. An empty promptID is replaced by a new one.
func (c *Client) Prompt(ctx context.Context, id, promptID, text string, attached ...*roostv1.Attachment) (*roostv1.PromptResponse, error) {
	req := &roostv1.PromptRequest{SessionId: id, PromptId: orNew(promptID), Text: text, Attachments: attached}
	return repeat(ctx, c.opt.RetryFor, c.service.Prompt, req)
}

// Steer queues a message into the run in progress, and repeats itself like Prompt.
func (c *Client) Steer(ctx context.Context, id, promptID, text string) (*roostv1.SteerResponse, error) {
	req := &roostv1.SteerRequest{SessionId: id, PromptId: orNew(promptID), Text: text}
	return repeat(ctx, c.opt.RetryFor, c.service.Steer, req)
}

// Abort asks for the end of the run in progress.
func (c *Client) Abort(ctx context.Context, id string) (*roostv1.AbortResponse, error) {
	return call(ctx, c.service.Abort, &roostv1.AbortRequest{SessionId: id})
}

// SetModel changes the model, "provider/id", of an idle session.
func (c *Client) SetModel(ctx context.Context, id, model string) error {
	_, err := call(ctx, c.service.SetModel, &roostv1.SetModelRequest{SessionId: id, Model: model})
	return err
}

// SetThinking changes the thinking level of an idle session.
func (c *Client) SetThinking(ctx context.Context, id, thinking string) error {
	_, err := call(ctx, c.service.SetThinking, &roostv1.SetThinkingRequest{SessionId: id, Thinking: thinking})
	return err
}

// SetMode changes the mode of an idle session to agent, ask, plan or debug.
func (c *Client) SetMode(ctx context.Context, id, mode string) error {
	_, err := call(ctx, c.service.SetMode, &roostv1.SetModeRequest{SessionId: id, Mode: mode})
	return err
}

// Answer answers the question about a call. When the server cannot be reached it asks again,
// like Prompt: the question waits. NotFound says that the first answer was another one, or,
// after a lost connection, perhaps this.
func (c *Client) Answer(ctx context.Context, req *roostv1.AnswerRequest) (*roostv1.AnswerResponse, error) {
	return repeat(ctx, c.opt.RetryFor, c.service.Answer, req)
}

// Rewind takes a message of the person, and everything after it, away from an idle session.
func (c *Client) Rewind(ctx context.Context, id, item string) error {
	_, err := call(ctx, c.service.Rewind, &roostv1.RewindRequest{SessionId: id, ItemId: item})
	return err
}

// Fork makes a session that begins with the transcript of another, up to before the message
// of the person with the id before, or all of it. Like Create it is not repeated by itself.
func (c *Client) Fork(ctx context.Context, id, before, name string) (*roostv1.ForkResponse, error) {
	return call(ctx, c.service.Fork, &roostv1.ForkRequest{SessionId: id, BeforeItemId: before, Name: name})
}

// Compact has old items of an idle session summarised, in a run that it returns the number of.
func (c *Client) Compact(ctx context.Context, id string) (*roostv1.CompactResponse, error) {
	return call(ctx, c.service.Compact, &roostv1.CompactRequest{SessionId: id})
}

// Export returns a session as a file: md, html, jsonl or pi.
func (c *Client) Export(ctx context.Context, id, format string) ([]byte, error) {
	res, err := call(ctx, c.service.ExportSession, &roostv1.ExportSessionRequest{SessionId: id, Format: format})
	return res.GetData(), err
}

// Import makes a session of a file. Like Create it is not repeated by itself.
func (c *Client) Import(ctx context.Context, req *roostv1.ImportSessionRequest) (*roostv1.ImportSessionResponse, error) {
	return call(ctx, c.service.ImportSession, req)
}

// Blob returns bytes by the hex SHA-256 of their content.
func (c *Client) Blob(ctx context.Context, hash string) ([]byte, error) {
	res, err := call(ctx, c.service.GetBlob, &roostv1.GetBlobRequest{Blob: hash})
	return res.GetData(), err
}

// NewPromptID returns an id for a prompt or steer that no other has.
func NewPromptID() string { return rand.Text() }

func orNew(promptID string) string {
	if promptID == "" {
		return NewPromptID()
	}
	return promptID
}

// repeat makes a call that may be made twice until it is answered, for as long as limit.
func repeat[Req, Res any](ctx context.Context, limit time.Duration, f func(context.Context, *Req) (*Res, error), req *Req) (*Res, error) {
	deadline := time.Now().Add(limit)
	for attempt := 0; ; attempt++ {
		res, err := call(ctx, f, req)
		wait := backoff(attempt)
		if err == nil || !lost(err) || time.Now().Add(wait).After(deadline) {
			return res, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// lost reports whether a call failed because of the connection or a server that comes and
// goes, so that another attempt makes sense.
func lost(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Kind == Unreachable || e.Kind == Unavailable)
}

// Limits of the pause before another attempt.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// backoff returns the pause before another attempt after attempt, from 0: it doubles up to a
// limit, and half of it is chance, so that many clients do not come back at once.
func backoff(attempt int) time.Duration {
	pause := min(firstPause<<min(attempt, 10), maxPause)
	return pause/2 + mathrand.N(pause/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
