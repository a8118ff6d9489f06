package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// piClient is a person with a client of pi's protocol.
type piClient struct {
	w    *world
	name string
	c    *client.Client // nil while it is away
	conn *conn
	seen texts
}

// come connects, if the client is away and there is a server.
func (p *piClient) come() {
	if p.c != nil && p.c.Err() == nil {
		return
	}
	p.leave()
	nc, err := p.w.net.dial("pi")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.w.ctx, 10*time.Second)
	defer cancel()
	revisions := make(map[string]int64) // of this connection, by session; the server's is ""
	watch := func(e piwire.Event) {
		id, revision := "", int64(0)
		switch e := e.(type) {
		case *piwire.ServerSnapshotEvent:
			revision = e.Snapshot.Revision
		case *piwire.SessionSnapshotEvent:
			id, revision = e.Snapshot.ID, e.Snapshot.Revision
		default:
			return
		}
		if last := revisions[id]; revision < last {
			p.w.fail("%s: the revision of %q went back from %d to %d", p.name, id, last, revision)
		}
		revisions[id] = revision
	}
	if c, err := client.New(ctx, nc, watch); err == nil {
		p.c, p.conn = c, nc
	}
}

// leave closes the connection without a word.
func (p *piClient) leave() {
	if p.c != nil {
		p.c.Close()
		p.c = nil
	}
}

// do sends a command; what becomes of it is told to the world's books.
func (p *piClient) do(what, id string) {
	if p.c == nil {
		return
	}
	c := p.c
	text := ""
	var cmd piwire.Command
	switch what {
	case "create":
		cmd = &piwire.Create{}
	case "attach":
		cmd = &piwire.Attach{SessionID: id}
	case "detach":
		cmd = &piwire.Detach{SessionID: id}
	case "prompt":
		text = p.w.say()
		cmd = &piwire.Prompt{SessionID: id, Text: text}
	case "steer":
		text = p.w.say()
		cmd = &piwire.Steer{SessionID: id, Text: text}
	case "abort":
		p.w.aborted(id)
		cmd = &piwire.Abort{SessionID: id}
	case "thinking":
		cmd = &piwire.SetThinking{SessionID: id, ThinkingLevel: "high"}
	case "model":
		cmd = &piwire.SetModel{SessionID: id, Model: piwire.ModelRef{Provider: "test", ID: pick(p.w.rng, "model", "other")}}
	case "list":
		cmd = &piwire.List{}
	}
	attached := what == "create" || what == "attach" || what == "list" || id == "" || p.w.rng.IntN(4) == 0
	c.With(id, func(v *client.View) { attached = attached || v != nil })
	p.w.open.Go(func() {
		if !attached {
			_, err := c.Do(p.w.ctx, &piwire.Attach{SessionID: id})
			p.w.note("%s attach %s first: %v", p.name, id, err)
		}
		result, err := c.Do(p.w.ctx, cmd)
		p.w.note("%s %s %s %q: %v", p.name, what, id, text, err)
		if e, ok := errors.AsType[*client.Error](err); ok {
			p.refused(what, id, e)
		}
		switch {
		case errors.Is(err, client.ErrViolation):
			p.w.fail("%s: %v", p.name, err)
		case err != nil:
		case what == "create":
			p.w.born(result.(*piwire.SessionResult).Session.ID, false)
		case text != "":
			p.w.acked(id, text, what == "steer")
		}
	})
}

// refused says whether a refusal is one that a client understands.
func (p *piClient) refused(what, id string, e *client.Error) {
	switch e.Code {
	case piwire.CodeBusy, piwire.CodeInvalidRequest, piwire.CodeSessionLocked:
	case piwire.CodeNotFound:
		if !p.w.deleted(id) {
			p.w.fail("%s: %s %s: %v", p.name, what, id, e)
		}
	case piwire.CodeInternal: // the disk is full, the session is reloaded, its owner has changed
	case piwire.CodeVersion, piwire.CodeNotImplemented:
		p.w.fail("%s: %s %s: %v", p.name, what, id, e)
	}
}

// check looks at what the client shows.
func (p *piClient) check() {
	if p.c == nil {
		return
	}
	if err := p.c.Err(); errors.Is(err, client.ErrViolation) {
		p.w.fail("%s: %v", p.name, err)
	}
	for _, id := range p.w.sessions() {
		p.c.With(id, func(v *client.View) {
			if v != nil && v.Snapshot != nil {
				p.w.looked(&p.seen, p.name, id, shownItems(v.Transcript()))
			}
		})
	}
}

// settle checks that the client shows what the server would show one that comes now.
func (p *piClient) settle(id string, s *session.State) {
	p.c.With(id, func(v *client.View) {
		if v == nil || v.Snapshot == nil {
			return
		}
		snapshot, err := piview.Snapshot(s, true, piwire.MaxFrame, noImages)
		if err != nil {
			p.w.fail("session %s: %v", id, err)
			return
		}
		if a, b := encoded(v.Transcript()), encoded(snapshot.Transcript); a != b || v.Snapshot.Phase != snapshot.Phase {
			p.w.fail("%s shows of %s\n%s\nand the server has\n%s", p.name, id, a, b)
		}
	})
}

func noImages(session.Image) ([]byte, bool) { return nil, false }

func encoded(items []piwire.Item) string {
	var b strings.Builder
	for _, i := range items {
		raw, err := piwire.EncodeItem(i)
		if err != nil {
			return err.Error()
		}
		line, err := piwire.AppendItem(nil, raw)
		fmt.Fprintf(&b, "%q %v\n", line, err)
	}
	return b.String()
}

// shownItem is an item as a client shows it.
type shownItem struct {
	id, text string
	user     bool
}

func shownItems(items []piwire.Item) (list []shownItem) {
	for _, i := range items {
		switch i := i.(type) {
		case *piwire.UserItem:
			list = append(list, shownItem{i.ID, blocksText(i.Content), true})
		case *piwire.AssistantItem:
			list = append(list, shownItem{i.ID, blocksText(i.Content), false})
		case *piwire.ToolItem:
		}
	}
	return list
}

func blocksText(blocks []piwire.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		switch block := block.(type) {
		case *piwire.Text:
			b.WriteString(block.Text)
		case *piwire.Thinking:
			b.WriteString(block.Thinking)
		}
	}
	return b.String()
}
