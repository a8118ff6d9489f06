package cursortest

import (
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Every trace begins with a run_request, and its messages are of kinds that are known.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("../testdata/traces/*.jsonl")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	for _, file := range files {
		all := Replay(t, file)
		if len(all) == 0 || all[0].Message.GetRunRequest().GetConversationId() == "" || all[0].Seq != 0 {
			t.Errorf("%s begins with %v", file, all)
			continue
		}
		for _, m := range all {
			if m.Message.GetMessage() == nil || m.RequestID == "" {
				t.Errorf("%s: %v", file, m)
			}
		}
	}
}

func TestReplayValues(t *testing.T) {
	all := Replay(t, "../testdata/traces/sdk32h1-mcp.jsonl")
	tool := all[0].Message.GetRunRequest().GetMcpTools().GetMcpTools()[0]
	schema, _ := tool.GetInputSchema().AsInterface().(map[string]any)
	if tool.GetToolName() != "add" || schema["type"] != "object" {
		t.Errorf("the tool is %v", tool)
	}
	// The client of this package sends what the real one sent.
	c := New(Options{ConversationID: all[0].Message.GetRunRequest().GetConversationId(), Tools: []Tool{{
		Name: "add", Description: "adds two numbers", Schema: schema,
	}}})
	defer c.Close()
	r, err := c.begin(t.Context(), Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.finish(r)
	r.id = all[0].Message.GetRunRequest().GetRunId()
	text := all[0].Message.GetRunRequest().GetAction().GetUserMessageAction().GetUserMessage().GetText()
	if got := r.request(new(agentv1.ConversationStateStructure), Prompt{Text: text}.action()); !proto.Equal(got, all[0].Message.GetRunRequest()) {
		t.Errorf("got  %v\nwant %v", got, all[0].Message.GetRunRequest())
	}
}
