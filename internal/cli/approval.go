package cli

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// What "roost run" does about questions.
const (
	approveAsk   = "ask" // the person at the terminal
	approveAllow = "allow"
	approveDeny  = "deny"
	approveWait  = "wait" // somebody else answers
)

const notOpen = "  the question is no longer open"

// approval deals with the questions of a run in the way that the person has chosen; the zero
// one leaves them alone. It belongs to one goroutine.
type approval struct {
	how     string
	explain bool // that the person has not chosen to deny
	client  *client.Client
	session string
	aside   *terminal
	say     func(string)

	stdin io.Reader
	lines chan string     // what the person types, once it has been asked something; nil before
	asked *roostv1.Item   // what the person is asked now, nil for nothing
	dealt map[string]bool // calls that need nothing more
}

// update deals with the questions that are new.
func (p *approval) update(ctx context.Context, v *client.View) error {
	open := v.Queries()
	if p.asked != nil && p.find(open, p.asked.Id) == nil {
		p.say(p.aside.style(dim, notOpen))
		p.asked = nil
	}
	for _, i := range open {
		if p.dealt[i.Id] || p.asked != nil {
			continue
		}
		if err := p.deal(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (*approval) find(items []*roostv1.Item, id string) *roostv1.Item {
	for _, i := range items {
		if i.Id == id {
			return i
		}
	}
	return nil
}

func (p *approval) deal(ctx context.Context, i *roostv1.Item) error {
	switch p.how {
	case approveAsk:
		p.asked = i
		p.tell(question(p.aside, i)...)
		p.tell(keys(p.aside, i.GetTool().Query)...)
		p.listen(ctx)
	case approveAllow:
		return again(p.answer(ctx, i, &roostv1.AnswerRequest{Allow: true}))
	case approveDeny:
		p.tell(question(p.aside, i)...)
		if p.explain {
			p.tell(p.aside.style(yellow, "  denied, because nobody can be asked here; --approve allow or --approve wait does otherwise"))
		}
		return again(p.answer(ctx, i, &roostv1.AnswerRequest{Reason: "Nobody was there to ask."}))
	case approveWait:
		p.tell(question(p.aside, i)...)
		p.tell(elsewhere(p.aside, p.session, i.Id))
		p.settle(i)
	}
	return nil
}

// again lets an answer that did not get through be tried again with the next frame.
func again(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Retry {
		return nil
	}
	return err
}

func (p *approval) tell(lines ...string) {
	for _, l := range lines {
		p.say(l)
	}
}

func (p *approval) settle(i *roostv1.Item) {
	if p.dealt == nil {
		p.dealt = make(map[string]bool)
	}
	p.dealt[i.Id] = true
}

// answer answers a question. That somebody else was faster is no error.
func (p *approval) answer(ctx context.Context, i *roostv1.Item, req *roostv1.AnswerRequest) error {
	req.SessionId, req.ItemId = p.session, i.Id
	_, err := p.client.Answer(ctx, req)
	if client.KindOf(err) == client.NotFound {
		p.say(p.aside.style(dim, notOpen))
		err = nil
	}
	if err == nil {
		p.settle(i)
	}
	return err
}

// listen has lines read. The reader cannot be stopped: it ends with its input, or with the
// next line after ctx.
func (p *approval) listen(ctx context.Context) {
	if p.lines != nil {
		return
	}
	lines, in := make(chan string), bufio.NewScanner(p.stdin)
	p.lines = lines
	go func() {
		defer close(lines)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
}

// typed takes a line of the person's, or the end of them. A line that comes when nothing is
// asked means nothing.
func (p *approval) typed(ctx context.Context, v *client.View, line string, more bool) error {
	i := p.asked
	switch {
	case !more:
		p.how, p.lines, p.asked = approveWait, nil, nil
		return p.update(ctx, v)
	case i == nil:
		return nil
	}
	req, ok := parseAnswer(line, i.GetTool().Query)
	if !ok {
		p.tell(keys(p.aside, i.GetTool().Query)...)
		return nil
	}
	err := p.answer(ctx, i, req)
	if e, ok := errors.AsType[*client.Error](err); ok {
		p.say(p.aside.style(red, "  not answered: "+p.aside.clean(e.Message)))
		return nil
	}
	if err != nil {
		return err
	}
	p.asked = nil
	return p.update(ctx, v)
}
