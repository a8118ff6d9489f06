package eventlog

import (
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

func encodeItems(items []session.Item) ([]*pb.Item, error) {
	ms := make([]*pb.Item, len(items))
	for i, item := range items {
		var err error
		if ms[i], err = encodeItem(item); err != nil {
			return nil, err
		}
	}
	return ms, nil
}

func (d *decoder) items(ms []*pb.Item) []session.Item {
	if len(ms) == 0 {
		return nil
	}
	items := make([]session.Item, len(ms))
	for i, m := range ms {
		items[i] = d.item(m)
		if d.err != nil {
			d.err = fmt.Errorf("item %d: %w", i, d.err)
			return nil
		}
	}
	return items
}

func encodeQuery(q *session.Query) *pb.Query {
	if q == nil {
		return nil
	}
	return &pb.Query{Reason: q.Reason, Grants: q.Grants, Until: q.Until}
}

func decodeQuery(m *pb.Query) *session.Query {
	if m == nil {
		return nil
	}
	return &session.Query{Reason: m.GetReason(), Grants: m.GetGrants(), Until: m.GetUntil()}
}

func encodeItem(item session.Item) (*pb.Item, error) {
	switch i := item.(type) {
	case *session.User:
		blocks, err := encodeBlocks(i.Blocks)
		if err != nil {
			return nil, err
		}
		return &pb.Item{Item: &pb.Item_User{User: &pb.User{
			Id: string(i.ID), Run: uint32(i.Run), Prompt: i.Prompt, Steer: i.Steer, Blocks: blocks, At: i.At,
			Note: string(i.Note),
		}}}, nil
	case *session.Assistant:
		blocks, err := encodeBlocks(i.Blocks)
		if err != nil {
			return nil, err
		}
		return &pb.Item{Item: &pb.Item_Assistant{Assistant: &pb.Assistant{
			Id: string(i.ID), Run: uint32(i.Run), Pass: uint32(i.Pass), Model: encodeModel(i.Model),
			ResponseModel: i.ResponseModel, Blocks: blocks, Status: encodeStatus(i.Status), Stop: encodeStop(i.Stop),
			Error: i.Error, Usage: encodeUsage(i.Usage), At: i.At,
		}}}, nil
	case *session.Tool:
		return &pb.Item{Item: &pb.Item_Tool{Tool: &pb.Tool{
			Id: string(i.ID), Run: uint32(i.Run), Call: string(i.Call), Name: i.Name, Input: i.Input,
			Host: encodeHost(i.Host), Status: encodeStatus(i.Status), Output: i.Output,
			Images: encodeImages(i.Images), Details: i.Details, At: i.At,
			Query: encodeQuery(i.Query),
		}}}, nil
	}
	return nil, fmt.Errorf("event log: item %T has no encoding", item)
}

func (d *decoder) item(m *pb.Item) session.Item {
	switch i := m.GetItem().(type) {
	case *pb.Item_User:
		u := i.User
		return &session.User{
			ID: session.ItemID(u.GetId()), Run: session.RunID(u.GetRun()), Prompt: u.GetPrompt(),
			Steer: u.GetSteer(), Blocks: d.blocks(u.GetBlocks()), At: u.GetAt(), Note: session.Note(u.GetNote()),
		}
	case *pb.Item_Assistant:
		a := i.Assistant
		return &session.Assistant{
			ID: session.ItemID(a.GetId()), Run: session.RunID(a.GetRun()), Pass: int(a.GetPass()),
			Model: decodeModel(a.GetModel()), ResponseModel: a.GetResponseModel(), Blocks: d.blocks(a.GetBlocks()),
			Status: d.status(a.GetStatus()), Stop: d.stop(a.GetStop()), Error: a.GetError(),
			Usage: decodeUsage(a.GetUsage()), At: a.GetAt(),
		}
	case *pb.Item_Tool:
		t := i.Tool
		return &session.Tool{
			ID: session.ItemID(t.GetId()), Run: session.RunID(t.GetRun()), Call: session.CallID(t.GetCall()),
			Name: t.GetName(), Input: t.GetInput(), Host: d.host(t.GetHost()), Status: d.status(t.GetStatus()),
			Output: t.GetOutput(), Images: decodeImages(t.GetImages()), Details: decodeDetails(t.GetDetails()), At: t.GetAt(),
			Query: decodeQuery(t.GetQuery()),
		}
	}
	d.fail("unknown kind of item")
	return nil
}

func encodeBlocks(blocks []session.Block) ([]*pb.Block, error) {
	ms := make([]*pb.Block, len(blocks))
	for i, b := range blocks {
		var err error
		if ms[i], err = encodeBlock(b); err != nil {
			return nil, err
		}
	}
	return ms, nil
}

func encodeBlock(block session.Block) (*pb.Block, error) {
	switch b := block.(type) {
	case session.Text:
		return &pb.Block{Block: &pb.Block_Text{Text: &pb.Text{Text: b.Text}}}, nil
	case session.Reasoning:
		return &pb.Block{Block: &pb.Block_Reasoning{Reasoning: &pb.Reasoning{
			Text: b.Text, Signature: b.Signature, Redacted: b.Redacted,
		}}}, nil
	case session.Image:
		return &pb.Block{Block: &pb.Block_Image{Image: encodeImage(b)}}, nil
	case session.ToolCall:
		return &pb.Block{Block: &pb.Block_ToolCall{ToolCall: &pb.ToolCall{
			Call: string(b.Call), Name: b.Name, Input: b.Input, Complete: b.Complete,
		}}}, nil
	}
	return nil, fmt.Errorf("event log: block %T has no encoding", block)
}

func (d *decoder) blocks(ms []*pb.Block) []session.Block {
	if len(ms) == 0 {
		return nil
	}
	blocks := make([]session.Block, len(ms))
	for i, m := range ms {
		blocks[i] = d.block(m)
	}
	return blocks
}

func (d *decoder) block(m *pb.Block) session.Block {
	switch b := m.GetBlock().(type) {
	case *pb.Block_Text:
		return session.Text{Text: b.Text.GetText()}
	case *pb.Block_Reasoning:
		r := b.Reasoning
		return session.Reasoning{Text: r.GetText(), Signature: r.GetSignature(), Redacted: r.GetRedacted()}
	case *pb.Block_Image:
		return decodeImage(b.Image)
	case *pb.Block_ToolCall:
		c := b.ToolCall
		return session.ToolCall{Call: session.CallID(c.GetCall()), Name: c.GetName(), Input: c.GetInput(), Complete: c.GetComplete()}
	}
	d.fail("unknown kind of block")
	return nil
}

func encodeImage(i session.Image) *pb.Image {
	return &pb.Image{Mime: i.MIME, Blob: i.Blob, Size: i.Size}
}

func decodeImage(m *pb.Image) session.Image {
	return session.Image{MIME: m.GetMime(), Blob: m.GetBlob(), Size: m.GetSize()}
}

func encodeImages(images []session.Image) []*pb.Image {
	ms := make([]*pb.Image, len(images))
	for i, image := range images {
		ms[i] = encodeImage(image)
	}
	return ms
}

func decodeImages(ms []*pb.Image) []session.Image {
	if len(ms) == 0 {
		return nil
	}
	images := make([]session.Image, len(ms))
	for i, m := range ms {
		images[i] = decodeImage(m)
	}
	return images
}

// decodeDetails keeps "there are none" apart from JSON text, which is never empty.
func decodeDetails(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}
